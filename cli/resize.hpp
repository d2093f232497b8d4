// `troupe add` and `troupe drain`: servers come and go while a job runs.
#pragma once

#include "cli/command.hpp"

namespace troupe {

command add_command(CLI::App& app);
command drain_command(CLI::App& app);

} // namespace troupe
