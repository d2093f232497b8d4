// The slots of bsp clocks that were pushed and wait for the others of their clock.
#pragma once

#include "actors/protocol/request_token.hpp"
#include "serialization/job.hpp"
#include "serialization/messages.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace troupe {

/// One pushed batch that waits for its clock.
struct bsp_slot {
  step_header step;
  /// Whose payload is summed: the first copy's. None where another replica's entry brought it.
  std::optional<request_token> source;
  std::vector<request_token> waiting; ///< Copies to be acknowledged with it, in order of arrival.
  bool counted = false;               ///< Another table of the push was applied on arrival.
};

/// Invariants:
/// (1) every kept slot belongs to a clock in [clocks(), clocks() + clocks_ahead_max].
/// (2) a slot's source never changes to another one: a second copy only waits with it.
/// (3) the oldest entry that is a clock is the next clock: one is made when all before it were
///     applied or discarded.
class bsp_slots {
public:
  /// Slots of clocks further ahead are not kept. Workers are at most a few clocks apart in bsp, so
  /// this only bounds what a confused sender can make a shard hold.
  static constexpr std::uint64_t clocks_ahead_max = 64;

  /// `clocks`: applied so far.
  bsp_slots(const job_spec& job, std::uint64_t clocks) : job_(job), clocks_(clocks) {}

  /// Clocks applied.
  std::uint64_t clocks() const { return clocks_; }
  /// Whether the batch's clock was applied / is too far ahead to be kept.
  bool applied(batch_id batch) const { return bsp_clock(job_, batch) < clocks_; }
  bool too_far(batch_id batch) const { return bsp_clock(job_, batch) > clocks_ + clocks_ahead_max; }

  /// Keeps a slot, or adds a copy's token to it. Where an entry has its clock already, it only
  /// waits. Requires: neither applied nor too far.
  void keep(const step_header& step, request_token token, bool counted);

  /// Whether all slots of the next clock are there and no entry has them yet.
  bool complete() const;
  /// The slots kept of the next clock, in slot order.
  std::vector<bsp_slot> next() const;
  /// First slot of the next clock that is not there. Requires: not complete, a clock is left.
  batch_id first_missing() const;
  /// The log has another entry that is a clock.
  void entered() { ++entries_; }
  /// The oldest entry is done with: forgets the slots of the next clock; applied: and counts it.
  void drop_next(bool applied);
  /// The log has no such entries any more.
  void truncated() { entries_ = 0; }
  bool empty() const { return kept_.empty(); }
  /// Forgets all slots; which they were, in slot order.
  std::vector<bsp_slot> drop_all();

  /// Whether this token's payload is the one to be summed, and in no entry yet.
  bool holds(request_token token) const;

private:
  /// Whether an entry has the slot, here or from another replica.
  bool is_entered(batch_id batch) const {
    return entries_ > 0 && bsp_clock(job_, batch) == clocks_;
  }

  job_spec job_;
  std::uint64_t clocks_;
  std::size_t entries_ = 0; ///< Of clocks, in the log and neither applied nor discarded.
  std::map<batch_id, bsp_slot> kept_;
};

} // namespace troupe
