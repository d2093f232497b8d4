// Describes an arena: memory into which one side of a link writes tensors that the other side
// reads. It is a memfd of the writer's, cut into granules. A slot is a run of granules and holds
// the tensors of one frame.
//
//   granule 0 ...      the words: a u32 for each granule, in order
//   granule first ...  slots
//
// Only the word of a slot's first granule counts. The writer stores `used` there, then sends the
// frame's head with the granule's number over the socket. From then on the slot is the reader's.
// The reader stores `free` when its last reference to the message is gone. The writer checks the
// words when it needs memory, so neither side waits for the other. A reader that overwrites the
// words, or a writer that overwrites its slots, harms only its own traffic.
#pragma once

#include <cstddef>
#include <cstdint>

namespace troupe::detail {

/// One page, so that two slots never share a page.
constexpr std::size_t granule_bytes = 4096;
/// Larger arenas are not mapped: they only cost a reader address space.
constexpr std::size_t arena_bytes_max = std::size_t{4} << 30;
constexpr std::size_t arena_bytes_min = std::size_t{64} << 10;

/// Offset in a frame's prefix of its slot's first granule; a 0 there means that the tensors follow.
constexpr std::size_t slot_number_offset = 12;

enum class slot_word : std::uint32_t { free = 0, used = 1 };

/// Values derived from the size of an arena.
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
  std::uint32_t first; ///< First granule of the slots.
};

} // namespace troupe::detail
