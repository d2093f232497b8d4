// Cuts the bytes of one class into frames. A tensor is received straight into the memory that the
// message keeps; a tensor in an arena is not received at all.
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

  /// Lifts the limit for unknown peers. `arena`: memory that may hold the peer's tensors, or null.
  void admit(std::shared_ptr<const arena_reader> arena);

  /// Returns where the next bytes belong; empty if they must be given to take().
  std::span<std::byte> direct();
  /// Notes that `size_bytes` bytes were written to direct().
  void advance(std::size_t size_bytes);
  /// Copies the leading bytes that belong to the current frame and returns their number. Requires:
  /// !complete(). Errors: malformed.
  result<std::size_t> take(std::span<const std::byte> bytes);
  bool complete() const { return stage_ == stage::complete; }
  /// Returns how many bytes of the tensors are missing; 0 until their place is known.
  std::size_t body_bytes_missing() const {
    return stage_ == stage::body ? sizes_.body_bytes - filled_ : 0;
  }
  /// Returns the message of the complete frame and begins the next. Errors: as wire::decode.
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
  std::size_t filled_ = 0; ///< Bytes received of the current stage.
  wire::sizes sizes_;
  std::array<std::byte, wire::prefix_bytes> prefix_{};
  std::vector<std::uint64_t> head_;       ///< Scratch, reused; aligned to 8.
  std::shared_ptr<std::byte> body_;       ///< Tensors that were received.
  std::shared_ptr<const std::byte> slot_; ///< Tensors in the sender's arena.
};

} // namespace troupe::detail
