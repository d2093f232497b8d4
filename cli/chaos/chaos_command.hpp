// `troupe chaos` runs a job of real processes under faults and checks that it kept its promises.
#pragma once

#include "cli/command.hpp"

namespace troupe {

command chaos_command(CLI::App& app);

} // namespace troupe
