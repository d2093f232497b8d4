// `troupe add` and `troupe drain` add servers to a running job and remove them.
#pragma once

#include "cli/command.hpp"

namespace troupe {

command add_command(CLI::App& app);
command drain_command(CLI::App& app);

} // namespace troupe
