// The ways in which user code misbehaves, by name.
#pragma once

#include <string>
#include <vector>

namespace misbehave {

/// Returns the names of all ways, for --how.
std::vector<std::string> acts();

/// Misbehaves in this way. Returns true if the caller is to give a number that is not finite; false
/// if it is to go on.
bool act(const std::string& how);

} // namespace misbehave
