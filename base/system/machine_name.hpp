// The name of the machine that this process runs on.
#pragma once

#include <string>

namespace troupe {

/// The same for all processes of a machine; empty where it has none.
std::string machine_name();

} // namespace troupe
