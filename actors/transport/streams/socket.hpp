// Descriptors with one owner, and sockets that listen.
#pragma once

#include "actors/transport/streams/endpoint.hpp"
#include "base/error.hpp"

#include <chrono>
#include <string>
#include <utility>

namespace troupe::detail {

class descriptor {
public:
  descriptor() = default;
  explicit descriptor(int value) : value_(value) {}
  ~descriptor() { reset(); }
  descriptor(descriptor&& other) noexcept : value_(other.release()) {}
  descriptor& operator=(descriptor&& other) noexcept;

  explicit operator bool() const { return value_ >= 0; }
  int get() const { return value_; }
  int release() { return std::exchange(value_, -1); }
  void reset();

private:
  int value_ = -1;
};

/// "Connection refused", for an errno.
std::string system_text(int error);

struct socket_tuning {
  /// Unacknowledged data ends the connection; 0: system.
  std::chrono::milliseconds user_timeout{0};
  std::string congestion_control; ///< Empty: the system's default.
};

/// Of a TCP socket. What the system lacks is left out.
void tune(const descriptor& socket, const socket_tuning& tuning);
/// Only speed or early detection depends on the option: what the system lacks is left out.
void set_option(const descriptor& socket, int level, int name, int value);

/// Non-blocking and closed on exec. Errors: in_use, io_failed, invalid_argument.
result<descriptor> open_listener(const endpoint& where);
/// Makes a socket from elsewhere usable as a listener. Errors: invalid_argument.
result<void> adopt_listener(const descriptor& socket);

} // namespace troupe::detail
