// Takes the bytes of a link apart: chunks into classes, classes into frames.
#pragma once

#include "actors/transport/frames/chunk.hpp"
#include "actors/transport/frames/frame_reader.hpp"

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

namespace troupe::detail {

/// Invariants:
/// (1) Before admit() there are only frames of class control.
/// (2) At most one frame is complete() at a time, and it belongs to the present chunk's class.
class chunk_reader {
public:
  explicit chunk_reader(buffer_pool& pool)
      : frames_{frame_reader{pool}, frame_reader{pool}, frame_reader{pool}} {}

  /// The peer is welcome. `arena`: see frame_reader::admit.
  void admit(const std::shared_ptr<const arena_reader>& arena);

  /// Where the next bytes belong; empty where they should be given to take().
  std::span<std::byte> direct();
  /// How many bytes behind those should be offered a place, of at most `size_max`: only the header
  /// of the next chunk where tensors go on after it, so that those are received in place too.
  std::size_t behind_direct(std::size_t size_max) const;
  /// So many bytes were written to direct().
  void advance(std::size_t size_bytes);
  /// Copies what belongs to the present frame and returns how much it was. Requires: !complete().
  /// Errors: malformed.
  result<std::size_t> take(std::span<const std::byte> bytes);

  bool complete() const { return present().complete(); }
  /// The message of the complete frame. Errors: those of wire::decode.
  result<message> decode() { return present().decode(); }
  /// Whether the peer said since the last call that it has mapped this side's arena.
  bool take_arena_mapped() { return std::exchange(arena_mapped_, false); }

private:
  frame_reader& present() { return frames_[static_cast<std::size_t>(traffic_)]; }
  const frame_reader& present() const { return frames_[static_cast<std::size_t>(traffic_)]; }
  result<void> begin_chunk();

  bool admitted_ = false;
  bool arena_mapped_ = false;
  traffic_class traffic_ = traffic_class::control;
  std::size_t chunk_left_ = 0;    ///< Bytes of the present chunk; 0: a header comes next ...
  std::size_t header_filled_ = 0; ///< ... of which so much is there.
  std::array<std::byte, chunk_header_bytes> header_{};
  std::array<frame_reader, traffic_classes> frames_;
};

} // namespace troupe::detail
