// The names of roles in certificates, their files, and texts about both.
#pragma once

#include "serialization/ids.hpp"

#include <array>
#include <string>
#include <vector>

namespace troupe::detail {

inline constexpr std::array all_roles{role::coordinator, role::server, role::worker,
                                      role::observer};

/// "coordinator", "server", "worker", "observer".
const char* role_name(role which);
/// "server", "server or worker"; "no role".
std::string names_of(const std::vector<role>& roles);

} // namespace troupe::detail
