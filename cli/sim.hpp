// `troupe sim` runs the program `troupe_sim` that lies beside this one.
#pragma once

#include "cli/command.hpp"

namespace troupe {

command sim_command(CLI::App& app);

} // namespace troupe
