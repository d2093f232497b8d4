// The sender's end of an arena: puts the tensors of frames into slots. See arena_layout.hpp.
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
/// (1) A slot is in given_ from before its frame is sent until its word said `free`; nothing else
///     that a reader does changes what this side believes.
/// (2) Nothing is ever read from the slots.
/// (3) No granule is written that has no memory: a slot gets it, or has it, when it is given out,
///     and none is taken away while a frame is being copied.
class arena_writer {
public:
  /// Bodies below this go over the socket: the kernel copies them twice, but measured, that is as
  /// fast at 4 KiB, where waking the receiver costs more than all copies.
  static constexpr std::size_t body_bytes_min = std::size_t{8} << 10;

  /// Null where the system cannot: too old, or no memory.
  static std::unique_ptr<arena_writer> make(std::size_t size_bytes);

  /// For the peer, once. Sealed in size.
  descriptor take_descriptor() { return std::move(memory_); }

  /// Copies the body into a slot, and names it in the head, where it is worth it and fits; else the
  /// frame is returned as it came.
  wire::frame place(wire::frame frame);

  /// Where nothing was placed since the last call: gives the system the memory behind the last slot
  /// that is in use.
  void trim();

private:
  arena_writer(descriptor memory, mapping whole, std::size_t size_bytes);

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
  const mapping whole_;

  std::mutex mutex_;
  slot_allocator granules_;
  std::vector<slot> given_;
  std::uint32_t populated_;                ///< Granules below this have memory.
  bool idle_ = false;                      ///< Since the last trim().
  std::atomic<std::uint32_t> copying_ = 0; ///< Frames on their way into their slots.
};

} // namespace troupe::detail
