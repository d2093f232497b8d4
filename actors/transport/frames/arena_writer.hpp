// Copies the tensors of outgoing frames into slots of an arena. See arena_layout.hpp.
#pragma once

#include "actors/transport/frames/arena_layout.hpp"
#include "actors/transport/frames/slot_allocator.hpp"
#include "actors/transport/streams/socket.hpp"
#include "base/system/mapped_memory.hpp"
#include "serialization/wire.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace troupe::detail {

/// Thread-safe.
///
/// Invariants:
/// (1) A slot is in given_ from before its frame is sent until its word says `free`; no other act
///     of a reader changes this side's state.
/// (2) This side never reads from the slots.
/// (3) Only granules with memory are written: a slot has memory when it is given out, and none is
///     taken away while a frame is being copied.
class arena_writer {
public:
  /// Smaller bodies go over the socket. The kernel copies them twice, but at 4 KiB that measured as
  /// fast: waking the receiver costs more than all copies.
  static constexpr std::size_t body_bytes_min = std::size_t{8} << 10;

  /// Returns null if the system is too old or has no memory.
  static std::unique_ptr<arena_writer> make(std::size_t size_bytes);

  /// Returns the descriptor for the peer, sealed in size. Call it once.
  descriptor take_descriptor() { return std::move(memory_); }

  /// Copies the body into a slot and names the slot in the head. Returns the frame unchanged if its
  /// body is small or does not fit.
  wire::frame place(wire::frame frame);

  /// Returns the memory behind the last slot in use to the system, if no frame was placed since the
  /// last call.
  void trim();

private:
  arena_writer(descriptor memory, mapped_memory whole, std::size_t size_bytes);

  struct slot {
    std::uint32_t first;
    std::uint32_t count;
  };

  std::optional<slot> take(std::size_t bytes);
  bool populate(const slot& wanted);
  void reclaim();
  std::uint32_t& word(std::uint32_t granule) const;

  const arena_layout layout_;
  descriptor memory_;
  const mapped_memory whole_;

  std::mutex mutex_;
  slot_allocator granules_;
  std::vector<slot> given_;
  std::uint32_t populated_;                ///< Granules below this have memory.
  bool idle_ = false;                      ///< No frame placed since the last trim().
  std::atomic<std::uint32_t> copying_ = 0; ///< Frames being copied into slots.
};

} // namespace troupe::detail
