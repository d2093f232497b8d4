// Names the roles in certificates, their files, and texts about both.
#pragma once

#include "serialization/ids.hpp"

#include <array>
#include <string>
#include <vector>

namespace troupe::detail {

inline constexpr std::array all_roles{role::coordinator, role::server, role::worker,
                                      role::observer};

/// Returns "coordinator", "server", "worker" or "observer".
const char* role_name(role which);
/// Returns a list such as "server or worker"; "no role" if it is empty.
std::string names_of(const std::vector<role>& roles);

} // namespace troupe::detail
