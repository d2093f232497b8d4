// `troupe sim` starts the program `troupe_sim` that lies beside this one, in place of this process.
#pragma once

#include "cli/command.hpp"

namespace troupe {

command sim_command(CLI::App& app);

} // namespace troupe
