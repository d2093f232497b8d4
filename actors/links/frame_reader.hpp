// Cuts the bytes that arrive on a link into frames. A tensor's bytes can be received straight into
// the memory that the message will keep.
#pragma once

#include "serialization/buffer.hpp"
#include "serialization/wire.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace troupe::detail {

/// A frame without segments: a sign of life that carries no message.
constexpr std::array<std::byte, wire::prefix_bytes> keep_alive_frame{std::byte{1}};

/// Invariants:
/// (1) Between calls filled_ is less than the size of the stage, or the frame is complete().
/// (2) The first frame is at most wire::hello_bytes_max long and no keep-alive, so an unknown peer
///     costs little memory.
class frame_reader {
public:
  explicit frame_reader(buffer_pool& pool) : pool_(pool) {}

  /// Where the next bytes belong; empty where they should be given to take().
  std::span<std::byte> direct();
  /// So many bytes were written to direct().
  void advance(std::size_t size_bytes);
  /// Copies what belongs to the present frame and returns how much it was. Requires: !complete().
  /// Errors: malformed.
  result<std::size_t> take(std::span<const std::byte> bytes);
  bool complete() const { return stage_ == stage::complete; }
  /// The message of the complete frame; goes on to the next. Errors: those of wire::decode.
  result<message> decode();

private:
  enum class stage { prefix, head, body, complete };

  std::span<std::byte> place();
  result<void> begin_frame();
  void enter(stage next);
  void skip_filled_stages();

  buffer_pool& pool_;
  stage stage_ = stage::prefix;
  bool first_ = true;
  std::size_t filled_ = 0; ///< Bytes of the present stage.
  wire::sizes sizes_;
  std::array<std::byte, wire::prefix_bytes> prefix_{};
  std::vector<std::uint64_t> head_; ///< Scratch, reused; aligned to 8.
  std::shared_ptr<std::byte> body_;
};

} // namespace troupe::detail
