// `troupe chaos`: a job of real processes under faults, and whether it kept its promises.
#pragma once

#include "cli/command.hpp"

namespace troupe {

command chaos_command(CLI::App& app);

} // namespace troupe
