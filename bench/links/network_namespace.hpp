// A network of this program's own, so that a setting of the whole system can be chosen for it.
#pragma once

#include <string>

namespace troupe::bench {

/// From here on this process and its children have a loopback of their own, whose TCP uses that
/// congestion control ("reno", "bbr", "cubic"). Requires: this process has one thread.
/// Throws std::runtime_error, with the reason, where the system does not allow it.
void enter_network_with(const std::string& congestion_control);

} // namespace troupe::bench
