// Makes sockets that listen, and tunes sockets.
#pragma once

#include "actors/transport/streams/socket_address.hpp"
#include "base/endpoint.hpp"
#include "base/error.hpp"
#include "base/system/descriptor.hpp"

#include <chrono>
#include <optional>
#include <string>

namespace troupe::detail {

/// "Connection refused", for an errno.
std::string system_text(int error);

struct socket_tuning {
  /// Time after which unacknowledged data ends the connection; 0: the system's default.
  std::chrono::milliseconds user_timeout{0};
  std::string congestion_control; ///< Empty: the system's default.
};

/// Tunes a TCP socket. Skips options that the system lacks.
void tune(const descriptor& socket, const socket_tuning& tuning);
/// Sets an option that affects only speed or early detection. Ignores options that the system
/// lacks.
void set_option(const descriptor& socket, int level, int name, int value);

/// Opens a listener, non-blocking and closed on exec. Port 0 is one of `ports`, or any.
/// Errors: in_use, io_failed, invalid_argument.
result<descriptor> open_listener(const endpoint& where, std::optional<port_range> ports = {});
/// Makes a socket from elsewhere usable as a listener. Errors: invalid_argument.
result<void> adopt_listener(const descriptor& socket);

} // namespace troupe::detail
