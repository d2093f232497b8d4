// A team: ranks of one host, threads or processes, that add up their numbers by a schedule. Each
// rank calls sum() with a buffer of its own; when it returns, the buffer holds what the schedule
// says.
//
//   numbers are            how they are reached
//   of threads             directly: no copy is made
//   in the common room     directly (team_memory::room)
//   private to a process   in parts of 512 KiB, which each rank copies into the team's memory and
//                          back, and which stay in a cache in between. (A single copy from process
//                          to process, process_vm_readv, takes twice as long: the system looks up
//                          each page of 4 KiB.)
//   few                    every rank puts its own into its slot, raises one flag and adds up all
//                          slots for itself: the steps that its result depends on
//
// Shapes:       equal counts on all ranks, and equal schedules; else every rank fails.
// Determinism:  bitwise the schedule's, whichever way.
// Errors:       a team that has failed stays failed; numbers are undefined then. A late
//               rank may still read and write those of others, where it reaches them directly: keep
//               them until every rank's sum() has returned or its process has ended.
// Cost:         block (schedule_for_team), n ranks: each reads and writes all n buffers once
//               together, so 2 * count * 4 bytes of memory traffic for a rank; one work for each
//               128 KiB that it owns; two meetings, of private numbers two for each part. No
//               allocation but of scratch in the first calls.
#pragma once

#include "kernels/executors/team_memory.hpp"
#include "kernels/executors/team_plan.hpp"

#include <chrono>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace troupe::kernels {

enum class team_outcome : std::uint32_t {
  done,
  sizes_differ,  ///< Ranks came with different counts.
  plans_differ,  ///< Ranks came with different schedules, or with one for another number of ranks.
  peer_lost,     ///< A rank has left, or its process has ended.
  peer_too_late, ///< A rank did nothing for the deadline.
};

/// What is wrong, and what to do.
std::string_view text_of(team_outcome outcome);

struct team_options {
  wait_options wait;
  /// Without progress of a rank that others wait for, the team fails. Longer: a slow rank is not
  /// taken for a dead one; one that ended is noticed within 100 ms anyway.
  std::chrono::milliseconds deadline{10'000};
};

/// One rank's seat. Thread safety: of one thread.
class team_member {
public:
  /// Borrowed: `memory` outlives this. Requires: rank < ranks, and nobody has this seat.
  team_member(team_memory& memory, std::uint32_t rank, const team_options& options = {});
  ~team_member();
  team_member(const team_member&) = delete;
  team_member& operator=(const team_member&) = delete;

  [[nodiscard]] team_outcome sum(const team_plan& plan, std::span<float> numbers);

private:
  /// Writes down what this rank comes with.
  void announce(const team_plan& plan, std::span<float> numbers, bool small);
  /// Whether all ranks' numbers can be reached where they are; then places_ says where.
  bool find_places(std::uint32_t staging);
  team_outcome sum_in_parts(const team_plan& plan, std::span<float> numbers);
  void sum_slots(const team_plan& plan, std::span<float> numbers);
  /// All works and the meeting behind them; places_ are known.
  team_outcome carry_out(const team_plan& plan, std::size_t count);
  void carry_out(const team_work& work, const chunk_range& range);
  team_outcome check_entries();
  const team_entry& entry_of(std::uint32_t rank) const;
  bool meet();
  bool wait_for(std::uint32_t rank, std::uint32_t value);
  team_outcome fail(team_outcome why);
  team_outcome failure() const;

  team_memory& memory_;
  const std::uint32_t ranks_;
  const std::uint32_t rank_;
  const team_options options_;
  int lock_ = -1;
  std::uint32_t base_ = 0;     ///< What every rank has published at the last meeting.
  std::uint32_t round_ = 0;    ///< Sums so far.
  std::vector<float*> places_; ///< Of this sum, in this process.
  std::vector<float> staging_, scratch_;
};

} // namespace troupe::kernels
