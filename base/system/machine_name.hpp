// Returns the name of the machine that this process runs on.
#pragma once

#include <string>

namespace troupe {

/// Returns the same name in all processes of a machine; empty where it has none.
std::string machine_name();

} // namespace troupe
