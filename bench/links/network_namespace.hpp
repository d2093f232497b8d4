// Gives this program a network of its own, to choose a setting of the whole system for it.
#pragma once

#include <string>

namespace troupe::bench {

/// Moves this process and its children to a loopback of their own, whose TCP uses
/// `congestion_control` ("reno", "bbr", "cubic"). Requires: this process has one thread.
/// Throws std::runtime_error, with the reason, where the system does not allow it.
void enter_network_with(const std::string& congestion_control);

} // namespace troupe::bench
