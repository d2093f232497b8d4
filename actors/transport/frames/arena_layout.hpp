// Memory that one side of a link writes tensors into and the other reads them from: a memfd of the
// writer's. It is cut into granules; a slot is a run of them and holds the tensors of one frame.
//
//   granule 0 ...      the words: a u32 for each granule, in order
//   granule first ...  slots
//
// Only the word of a slot's first granule matters. The writer stores `used` there, then the frame's
// head goes over the socket with the granule's number, and the slot is the reader's until it stores
// `free`. It does so when its last reference to the message is gone; the writer looks there when it
// needs memory. So nobody waits for the other, and a reader that scribbles over the words, or a
// writer that does over its slots, harms what it sends or receives itself.
#pragma once

#include <cstddef>
#include <cstdint>

namespace troupe::detail {

/// A page: what is free of one slot is not in a page of another.
constexpr std::size_t granule_bytes = 4096;
/// Larger ones are not mapped: they only cost a reader's address space.
constexpr std::size_t arena_bytes_max = std::size_t{4} << 30;
constexpr std::size_t arena_bytes_min = std::size_t{64} << 10;

/// Where in the prefix of a frame the number of its slot's first granule is; 0: its tensors follow.
constexpr std::size_t slot_number_offset = 12;

enum class slot_word : std::uint32_t { free = 0, used = 1 };

/// What follows from the size of an arena.
struct arena_layout {
  /// Requires: usable(size_bytes).
  explicit constexpr arena_layout(std::size_t size_bytes)
      : granules(static_cast<std::uint32_t>(size_bytes / granule_bytes)),
        first(static_cast<std::uint32_t>(granules_for(granules * sizeof(std::uint32_t)))) {}

  static constexpr bool usable(std::size_t size_bytes) {
    return size_bytes >= arena_bytes_min && size_bytes <= arena_bytes_max
           && size_bytes % granule_bytes == 0;
  }
  static constexpr std::size_t granules_for(std::size_t bytes) {
    return (bytes + granule_bytes - 1) / granule_bytes;
  }
  constexpr std::size_t words_bytes() const { return first * granule_bytes; }

  std::uint32_t granules;
  std::uint32_t first; ///< The first one of the slots.
};

} // namespace troupe::detail
