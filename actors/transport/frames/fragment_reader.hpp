// Splits the bytes of a link: fragments into classes, classes into frames.
#pragma once

#include "actors/transport/frames/fragment.hpp"
#include "actors/transport/frames/frame_reader.hpp"

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

namespace troupe::detail {

/// Invariants:
/// (1) Before admit() all frames are of class control.
/// (2) At most one frame is complete() at a time, and it belongs to the current fragment's class.
class fragment_reader {
public:
  explicit fragment_reader(buffer_pool& pool)
      : frames_{frame_reader{pool}, frame_reader{pool}, frame_reader{pool}} {}

  /// Lifts the limits for unknown peers. `arena`: see frame_reader::admit.
  void admit(const std::shared_ptr<const arena_reader>& arena);

  /// Returns where the next bytes belong; empty if they must be given to take().
  std::span<std::byte> direct();
  /// Returns how many bytes after direct() should get a place, at most `size_max`. If the tensors
  /// go on in the next fragment, it is only that fragment's header, so that they are received in
  /// place.
  std::size_t behind_direct(std::size_t size_max) const;
  /// Notes that `size_bytes` bytes were written to direct().
  void advance(std::size_t size_bytes);
  /// Copies the leading bytes that belong to the current frame and returns their number. Requires:
  /// !complete(). Errors: malformed.
  result<std::size_t> take(std::span<const std::byte> bytes);

  bool complete() const { return present().complete(); }
  /// Returns the message of the complete frame. Errors: as wire::decode.
  result<message> decode() { return present().decode(); }
  /// Returns whether the peer reported since the last call that it mapped this side's arena.
  bool take_arena_mapped() { return std::exchange(arena_mapped_, false); }

private:
  frame_reader& present() { return frames_[static_cast<std::size_t>(traffic_)]; }
  const frame_reader& present() const { return frames_[static_cast<std::size_t>(traffic_)]; }
  result<void> begin_fragment();

  bool admitted_ = false;
  bool arena_mapped_ = false;
  traffic_class traffic_ = traffic_class::control;
  std::size_t fragment_left_ = 0; ///< Bytes left of the current fragment; 0: a header comes next.
  std::size_t header_filled_ = 0; ///< Bytes received of that header.
  std::array<std::byte, fragment_header_bytes> header_{};
  std::array<frame_reader, traffic_classes> frames_;
};

} // namespace troupe::detail
