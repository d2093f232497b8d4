// Descriptors with one owner, and the system calls on stream sockets that links need.
#pragma once

#include "actors/links/endpoint.hpp"
#include "serialization/error.hpp"

#include <sys/uio.h>

#include <chrono>
#include <cstddef>
#include <span>
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
  std::chrono::milliseconds user_timeout{
    0};                           ///< Unacknowledged data ends the connection; 0: system.
  std::string congestion_control; ///< Empty: the system's default.
};

/// How one attempt to read or write went. `bytes` is 0 unless status is `moved`.
struct transfer {
  enum class status { moved, would_block, ended, failed };
  status how = status::moved;
  std::size_t bytes = 0;
  int error = 0; ///< errno, where it failed.
};

/// The bytes of one link, in order, both ways; no call blocks. Another kind of link (shared memory,
/// TLS) has to offer the same: gather, scatter, an end in one direction, a descriptor to poll.
/// Thread safety: one reader and one writer may work at the same time.
class stream_socket {
public:
  stream_socket() = default;
  explicit stream_socket(descriptor owned) : descriptor_(std::move(owned)) {}

  /// Begins to connect; writable means that connect_error() is known. Empty where it failed at
  /// once.
  static stream_socket connect(const socket_address& where, int& error);
  /// 0 once connected, else an errno. A socket that reached itself counts as refused: the system
  /// may choose the very port that is being looked for.
  int connect_error() const;

  void tune(const socket_tuning& tuning) const;
  transfer write(std::span<iovec> parts) const;
  transfer read(std::span<iovec> places) const;
  /// Whether bytes wait to be read.
  bool readable() const;
  /// Tells the peer that nothing more will be written.
  void finish_writing() const;
  void reset();
  int poll_descriptor() const { return descriptor_.get(); }
  explicit operator bool() const { return static_cast<bool>(descriptor_); }

private:
  descriptor descriptor_;
};

/// Non-blocking and closed on exec. Errors: in_use, io_failed, invalid_argument.
result<descriptor> open_listener(const endpoint& where);
/// Makes a socket from elsewhere usable as a listener. Errors: invalid_argument.
result<void> adopt_listener(const descriptor& socket);

} // namespace troupe::detail
