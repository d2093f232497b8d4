// Keeps the slots of bsp clocks that were pushed and wait for the other slots of their clock.
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
  /// The push whose payload is summed: the first copy. Nullopt if another replica's entry has it.
  std::optional<request_token> source;
  std::vector<request_token> waiting; ///< Copies acknowledged with it, in order of arrival.
  bool counted = false;               ///< Another table of the push was applied on arrival.
};

/// Invariants:
/// (1) every kept slot belongs to a clock in [clocks(), clocks() + clocks_ahead_max]. Held by:
///     assert in keep(), drop_next().
/// (2) a slot's source never changes to another push: a second copy only waits with it. Held by:
///     assert in keep().
/// (3) the oldest entry that is a clock is the next clock: such an entry is made when all before it
///     were applied or discarded. Held by: assert in shard::applied().
class bsp_slots {
public:
  /// Slots of clocks further ahead are not kept. Workers are at most a few clocks apart in bsp, so
  /// this only bounds the memory that a faulty sender can use.
  static constexpr std::uint64_t clocks_ahead_max = 64;

  /// `clocks`: the number applied so far.
  bsp_slots(const job_spec& job, std::uint64_t clocks) : job_(job), clocks_(clocks) {}

  /// Returns the number of clocks applied.
  std::uint64_t clocks() const { return clocks_; }
  /// Return whether the batch's clock was applied, or is too far ahead to be kept.
  bool applied(batch_id batch) const { return bsp_clock(job_, batch) < clocks_; }
  bool too_far(batch_id batch) const { return bsp_clock(job_, batch) > clocks_ + clocks_ahead_max; }

  /// Keeps a slot, or adds a copy's token to it. If an entry already has its clock, the token only
  /// waits. Requires: neither applied() nor too_far().
  void keep(const step_header& step, request_token token, bool counted);

  /// Returns whether all slots of the next clock are there and no entry has them yet.
  bool complete() const;
  /// Returns the kept slots of the next clock, in slot order.
  std::vector<bsp_slot> next() const;
  /// Returns the first missing slot of the next clock. Requires: not complete(), and a clock is
  /// left.
  batch_id first_missing() const;
  /// Notes that the log has another entry that is a clock.
  void entered() { ++entries_; }
  /// Drops the oldest clock entry and the slots of the next clock. `applied`: counts that clock
  /// too.
  void drop_next(bool applied);
  /// Notes that the log has no clock entries any more.
  void truncated() { entries_ = 0; }
  bool empty() const { return kept_.empty(); }
  /// Drops all slots and returns them, in slot order.
  std::vector<bsp_slot> drop_all();

  /// Returns the requests that wait here, each with the batch of its slot.
  std::vector<std::pair<request_token, batch_id>> waits() const;
  /// Returns whether this token's payload is the one to be summed, and in no entry yet.
  bool holds(request_token token) const;

private:
  /// Returns whether an entry, of this or another replica, has the slot.
  bool is_entered(batch_id batch) const {
    return entries_ > 0 && bsp_clock(job_, batch) == clocks_;
  }

  job_spec job_;
  std::uint64_t clocks_;
  std::size_t entries_ = 0; ///< Clock entries in the log, neither applied nor discarded.
  std::map<batch_id, bsp_slot> kept_;
};

} // namespace troupe
