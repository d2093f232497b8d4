// Memory that the ranks of a team share: how far each has come, where its numbers are, slots and
// parts for numbers on their way, and room for buffers. It is of one process (threads) or has a
// descriptor, by which other processes of this host attach to it.
#pragma once

#include "base/shared_counter.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace troupe::kernels {

/// What a rank says of itself at the beginning of a sum.
struct team_entry {
  std::uint64_t count = 0;
  std::uint64_t fingerprint = 0; ///< Of the plan.
  /// Of its numbers. Threads: in their process. Processes: from the memory's beginning, 0 where
  /// they are not in it.
  std::uint64_t address = 0;
  std::uint64_t staging = 0; ///< Of the staging place, counted alike; rank 0 says it.
};

enum class rank_slot : std::uint32_t { empty, taken, left };

struct team_line {
  shared_counter done;
  std::array<team_entry, 2> entries; ///< Of sums with even and odd numbers.
  std::atomic<rank_slot> slot{rank_slot::empty};
  std::atomic<bool> locked{false}; ///< Whether lock_slot() worked, so that its end is noticed.
};

/// Room for each rank's numbers in a small sum, twice: who is done already writes the next one.
inline constexpr std::size_t team_slot_floats = 2048;

/// Of private numbers so many are in the team's memory at a time. More: fewer meetings; less: those
/// of all ranks stay in the caches. 256 KiB to 1 MiB took about as long for 2 and 4 ranks.
inline constexpr std::size_t team_part_floats = 128 * 1024;

class team_memory {
public:
  static constexpr std::uint32_t ranks_max = 64;

  /// Of threads of this process. None, here and below, where the system has no memory.
  static std::optional<team_memory> of_threads(std::uint32_t ranks);
  /// Of processes; `room_floats` for each rank. A process attaches by the descriptor, which it
  /// inherits or is sent. The room takes memory where it is written.
  static std::optional<team_memory> of_processes(std::uint32_t ranks, std::size_t room_floats);
  /// None too where the descriptor is of something else.
  static std::optional<team_memory> attach(int descriptor);

  team_memory(team_memory&& other) noexcept;
  team_memory& operator=(team_memory&&) = delete;
  ~team_memory();

  std::uint32_t ranks() const;
  /// -1: of threads.
  int descriptor() const { return descriptor_; }
  team_line& line(std::uint32_t rank) const;
  std::atomic<std::uint32_t>& failure() const; ///< 0: none.
  std::span<float> slot(std::uint32_t rank, std::uint32_t parity) const;
  /// For a rank's part of its private numbers; rank = ranks, here and below: for the staging place.
  std::span<float> part(std::uint32_t rank) const;
  /// A rank's part of the common room, on a page of its own. Lifetime: of this memory.
  std::span<float> room(std::uint32_t rank) const;
  std::byte* begin() const { return begin_; }
  /// From the beginning; none where the numbers are not, all of them, in the room.
  std::optional<std::uint64_t> offset_of(std::span<const float> numbers) const;

  /// Takes the lock that says that this process lives, by a descriptor of its own, which stays open
  /// as long as the process is of the team. -1: not to be had.
  int lock_slot(std::uint32_t rank) const;
  /// Whether a process holds that lock; true where that can't be known, as of threads.
  bool slot_is_locked(std::uint32_t rank) const;

private:
  team_memory(int descriptor, std::byte* begin, std::size_t size)
      : descriptor_(descriptor), begin_(begin), size_(size) {}
  static std::optional<team_memory> make(int descriptor, std::uint32_t ranks,
                                         std::size_t room_floats);
  struct header;
  const header& head() const;

  int descriptor_;
  std::byte* begin_;
  std::size_t size_;
};

} // namespace troupe::kernels
