// Cuts the bytes of one class into frames. A tensor's bytes can be received straight into the
// memory that the message will keep, or lie in an arena and are not received at all.
#pragma once

#include "actors/transport/frames/arena_reader.hpp"
#include "base/buffer.hpp"
#include "serialization/wire.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace troupe::detail {

/// Invariants:
/// (1) Between calls filled_ is less than the size of the stage, or the frame is complete().
/// (2) A frame that begins before admit() is at most wire::hello_bytes_max long, so an unknown peer
///     costs little memory.
class frame_reader {
public:
  explicit frame_reader(buffer_pool& pool) : pool_(&pool) {}

  /// The peer is welcome. `arena`: where its tensors may be; may be null.
  void admit(std::shared_ptr<const arena_reader> arena);

  /// Where the next bytes belong; empty where they should be given to take().
  std::span<std::byte> direct();
  /// So many bytes were written to direct().
  void advance(std::size_t size_bytes);
  /// Copies what belongs to the present frame and returns how much it was. Requires: !complete().
  /// Errors: malformed.
  result<std::size_t> take(std::span<const std::byte> bytes);
  bool complete() const { return stage_ == stage::complete; }
  /// How much of the tensors is missing, once their place is known; else 0.
  std::size_t body_bytes_missing() const {
    return stage_ == stage::body ? sizes_.body_bytes - filled_ : 0;
  }
  /// The message of the complete frame; goes on to the next. Errors: those of wire::decode.
  result<message> decode();

private:
  enum class stage { prefix, head, body, complete };

  std::span<std::byte> place();
  result<void> begin_frame();
  void enter(stage next);
  void skip_filled_stages();

  buffer_pool* pool_;
  std::shared_ptr<const arena_reader> arena_;
  bool admitted_ = false;
  stage stage_ = stage::prefix;
  std::size_t filled_ = 0; ///< Bytes of the present stage.
  wire::sizes sizes_;
  std::array<std::byte, wire::prefix_bytes> prefix_{};
  std::vector<std::uint64_t> head_;       ///< Scratch, reused; aligned to 8.
  std::shared_ptr<std::byte> body_;       ///< Received ...
  std::shared_ptr<const std::byte> slot_; ///< ... or where the sender left it.
};

} // namespace troupe::detail
