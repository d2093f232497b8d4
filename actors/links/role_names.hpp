// The names of roles in certificates, their files, and texts about both.
#pragma once

#include "serialization/ids.hpp"

#include <string>
#include <vector>

namespace troupe::detail {

/// "coordinator", "server", "worker", "observer".
const char* role_name(role which);
/// "server", "server or worker"; "no role".
std::string names_of(const std::vector<role>& roles);

} // namespace troupe::detail
