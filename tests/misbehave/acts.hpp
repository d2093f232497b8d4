// The ways in which user code misbehaves, by name.
#pragma once

#include <string>
#include <vector>

namespace misbehave {

/// Returns the names of all ways, for --how.
std::vector<std::string> acts();

/// Returns the signals that a program started now finds blocked or ignored, as /proc/PID/status has
/// them, and "lives" if SIGTERM does not end such a program.
std::string signals_of_a_child();

/// Misbehaves in this way. Returns true if the caller is to give a number that is not finite; false
/// if it is to go on.
bool act(const std::string& how);

} // namespace misbehave
