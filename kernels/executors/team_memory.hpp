// Memory that the ranks of a team share: their progress, the places of their numbers, slots and
// parts for numbers in transit, and room for buffers. It belongs to one process (threads), or has a
// descriptor by which other processes of this host attach to it.
//
// Rounds: one memory serves many teams, one after the other. Each has a number, its round. A rank
// enters the current round; if it was in that round before, it begins the next one. Once all ranks
// are in one round, none of them uses the memory for an earlier one.
#pragma once

#include "base/error.hpp"
#include "base/shared_counter.hpp"
#include "base/system/descriptor.hpp"
#include "base/system/mapped_memory.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace troupe::kernels {

/// A rank's announcement at the beginning of a sum.
struct team_entry {
  std::uint64_t count = 0;
  std::uint64_t fingerprint = 0; ///< Fingerprint of the plan.
  /// Address of its numbers. Threads: in their process. Processes: from the memory's beginning; 0
  /// if the numbers are not in it.
  std::uint64_t address = 0;
  std::uint64_t staging = 0; ///< Address of the staging place, counted likewise; rank 0 gives it.
  std::uint64_t label = 0;   ///< Says which sum it is: team_member::sum.
};

enum class rank_slot : std::uint32_t { empty, taken, left };

struct team_line {
  shared_counter done;
  shared_counter entered;                   ///< The round that the rank entered last.
  std::atomic<std::uint32_t> generation{0}; ///< Number that it entered with; see team_options.
  std::array<team_entry, 2> entries;        ///< Of sums with even and odd numbers.
  std::atomic<rank_slot> slot{rank_slot::empty};
  std::atomic<bool> locked{false}; ///< Whether lock_slot() succeeded, so that a death is noticed.
};

/// Floats of each rank in a small sum. There are two slots: a finished rank already fills the next.
inline constexpr std::size_t team_slot_floats = 2048;

/// Floats of private numbers in the team's memory at a time. More: fewer meetings; less: the parts
/// of all ranks stay in the caches. 256 KiB to 1 MiB took about the same time for 2 and 4 ranks.
inline constexpr std::size_t team_part_floats = 128 * 1024;

class team_memory {
public:
  static constexpr std::uint32_t ranks_max = 64;

  /// Makes memory for threads of this process. Errors: io_failed.
  static result<team_memory> of_threads(std::uint32_t ranks);
  /// Makes memory for processes; `room_floats` for each rank, zeros at first. A process attaches by
  /// the descriptor, which it inherits or is sent. The memory has no name: it ends with the last
  /// process that has it. It is allocated here, but for the staging place's room, so that writing
  /// to it cannot fail. Errors: io_failed, invalid_argument (more than ranks_max).
  static result<team_memory> of_processes(std::uint32_t ranks, std::size_t room_floats);
  /// Attaches to that memory. Errors: io_failed, malformed (the descriptor is of something else).
  static result<team_memory> attach(int descriptor);

  std::uint32_t ranks() const;
  /// Returns -1 for memory of threads.
  int descriptor() const { return descriptor_.get(); }
  team_line& line(std::uint32_t rank) const;
  /// Returns the number of the current round.
  std::uint32_t round() const;
  /// Enters the current round, or the next one if the rank was in the current one. Ends earlier
  /// rounds for all ranks. Requires: no other thread or process is this rank.
  std::uint32_t enter(std::uint32_t rank, std::uint32_t generation) const;
  /// Returns the last failure: the round in the upper half, a team_outcome in the lower; 0: none.
  std::atomic<std::uint64_t>& failure() const;
  /// Wakes all ranks that wait.
  void wake_all() const;
  std::span<float> slot(std::uint32_t rank, std::uint32_t parity) const;
  /// Returns a rank's part for its private numbers; for rank = ranks, here and below, the staging
  /// place.
  std::span<float> part(std::uint32_t rank) const;
  /// Returns a rank's room, on its own page. Lifetime: of this memory.
  std::span<float> room(std::uint32_t rank) const;
  std::byte* begin() const { return memory_.data(); }
  /// Returns the offset of numbers that are all in the room; else nullopt.
  std::optional<std::uint64_t> offset_of(std::span<const float> numbers) const;

  /// Takes the lock that shows that this process lives, by its own descriptor. The process keeps it
  /// open while it is in the team. Returns -1 on failure.
  int lock_slot(std::uint32_t rank) const;
  /// Returns whether a process holds that lock; true if unknown, as for threads.
  bool slot_is_locked(std::uint32_t rank) const;

private:
  team_memory(troupe::descriptor file, detail::mapped_memory memory, std::size_t size)
      : descriptor_(std::move(file)), memory_(std::move(memory)), size_(size) {}
  static result<team_memory> make(troupe::descriptor file, std::uint32_t ranks,
                                  std::size_t room_floats);
  struct header;
  const header& head() const;

  troupe::descriptor descriptor_;
  detail::mapped_memory memory_;
  std::size_t size_;
};

} // namespace troupe::kernels
