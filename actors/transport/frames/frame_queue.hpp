// Holds the frames of one class that wait to be sent, as one stream of bytes.
#pragma once

#include "serialization/wire.hpp"

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <deque>
#include <limits.h>
#include <span>

namespace troupe::detail {

/// Collects the parts of one write. Borrowed: no part may move before it is written.
class gather_list {
public:
  /// Enough to send many small messages at once.
  static constexpr std::size_t parts_max = 128;
  static_assert(parts_max <= IOV_MAX);

  bool full() const { return count_ == parts_.size(); }
  std::size_t size_bytes() const { return size_bytes_; }
  std::span<iovec> parts() { return std::span{parts_}.first(count_); }
  /// Requires: !full().
  void add(std::span<const std::byte> bytes);

private:
  std::array<iovec, parts_max> parts_;
  std::size_t count_ = 0;
  std::size_t size_bytes_ = 0;
};

class frame_queue {
public:
  /// A place in the stream, counted from its front.
  struct cursor {
    std::size_t frame = 0;
    std::size_t part = 0;   ///< 0: the head, i: body[i - 1].
    std::size_t offset = 0; ///< Bytes into the part.
  };

  void push(wire::frame what);
  std::size_t size_bytes() const { return size_bytes_; }
  /// Returns where the unsent bytes begin.
  cursor front() const { return front_; }
  /// Adds the next `size_bytes` bytes, or as many as `to` has room for, and advances `at`.
  void gather(cursor& at, std::size_t size_bytes, gather_list& to) const;
  /// Removes `size_bytes` sent bytes from the front, and frames that are done.
  void consume(std::size_t size_bytes);
  void clear();

private:
  std::deque<wire::frame> frames_;
  cursor front_; ///< Its frame is 0.
  std::size_t size_bytes_ = 0;
};

} // namespace troupe::detail
