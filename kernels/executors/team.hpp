// A team: ranks of one host, threads or processes, that add up their numbers by a schedule. Each
// rank calls sum() with its own buffer. On return the buffer holds the schedule's result.
//
//   numbers are            access
//   of threads             direct, without a copy
//   in the common room     direct (team_memory::room)
//   private to a process   in parts of 512 KiB. Each rank copies them into the team's memory and
//                          back; they stay in a cache in between. (A single copy from process to
//                          process, process_vm_readv, takes twice the time: the system looks up
//                          each page of 4 KiB.)
//   few                    each rank copies its numbers into its slot and raises one flag. Then it
//                          adds up all slots for itself, by the steps its result depends on.
//
// Shapes:       equal counts on all ranks, and equal schedules; else every rank fails.
// Determinism:  bitwise the schedule's result, whatever the access.
// Errors:       a failed team stays failed; numbers are undefined then. A late rank may still
//               access directly reached numbers of others: keep them until every rank's sum() has
//               returned or its process has ended, or until all ranks are in a later round.
// Rounds:       a new member enters a round of the memory (team_memory). A team that lost a rank is
//               followed by another one in the same memory: each rank makes a new member, and waits
//               until missing() finds none.
// Cost:         plan_of_sum, n ranks: together they read and write all n buffers
//               once, so 2 * count * 4 bytes of memory traffic for a rank. One work for each 128
//               KiB that a rank owns. Two meetings; for private numbers two for each part. Only the
//               first calls allocate, for scratch.
#pragma once

#include "kernels/executors/team_memory.hpp"
#include "kernels/executors/team_plan.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace troupe::kernels {

enum class team_outcome : std::uint32_t {
  done,
  sizes_differ,  ///< Ranks came with different counts.
  plans_differ,  ///< Ranks came with different schedules, or with a schedule for another number of
                 ///< ranks.
  labels_differ, ///< Ranks came with different sums: one has left out a sum.
  peer_lost,     ///< A rank has left, or its process has ended.
  peer_too_late, ///< A rank made no progress within the deadline.
};

/// Describes the outcome and its remedy.
std::string_view text_of(team_outcome outcome);

struct team_options {
  wait_options wait;
  /// The team fails after this time without progress of an awaited rank. Longer: a slow rank is not
  /// mistaken for a dead one. An ended process is noticed within 100 ms anyway.
  std::chrono::milliseconds deadline{10'000};
  /// Ranks with different numbers are no team: see missing().
  std::uint32_t generation = 0;
};

/// One rank's membership. Thread safety: for one thread.
class team_member {
public:
  /// Enters a round. Borrows `memory`, which must outlive it. Requires: rank < ranks, and no other
  /// thread or process is this rank.
  team_member(team_memory& memory, std::uint32_t rank, const team_options& options = {});
  ~team_member();
  team_member(const team_member&) = delete;
  team_member& operator=(const team_member&) = delete;

  /// Returns a rank that is not in this round, or has another generation; nullopt: all are there.
  std::optional<std::uint32_t> missing() const;
  bool has_come(std::uint32_t rank) const;
  /// Returns false once a rank has entered a later round: this member is of no more use.
  bool is_current() const { return memory_.round() == round_; }
  /// Returns once that rank may have entered, or after `sleep_max`.
  void await(std::uint32_t rank, std::chrono::microseconds sleep_max) const;

  /// Carries a plan out. `label`: any number that is equal on all ranks for one and the same sum.
  [[nodiscard]] team_outcome sum(const team_plan& plan, std::span<float> numbers,
                                 std::uint64_t label = 0);

private:
  /// Writes down this rank's count, plan and address for the others.
  void announce(const team_plan& plan, std::span<float> numbers, bool small, std::uint64_t label);
  /// Returns whether all ranks' numbers can be accessed in place; then sets places_.
  bool find_places(std::uint32_t staging);
  team_outcome sum_in_parts(const team_plan& plan, std::span<float> numbers);
  void sum_slots(const team_plan& plan, std::span<float> numbers);
  /// Does all works and the meeting behind them. Requires: places_ are set.
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
  std::uint32_t round_ = 0;    ///< Of the memory.
  std::uint32_t base_ = 0;     ///< The number that every rank published at the last meeting.
  std::uint32_t sums_ = 0;     ///< Number of sums so far.
  std::vector<float*> places_; ///< Addresses for this sum, in this process.
  std::vector<float> staging_, scratch_;
};

} // namespace troupe::kernels
