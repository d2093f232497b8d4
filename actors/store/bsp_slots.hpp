// The slots of bsp clocks that were pushed and wait for the others of their clock.
#pragma once

#include "actors/store/request_token.hpp"
#include "serialization/job.hpp"

#include <cstdint>
#include <map>
#include <vector>

namespace troupe {

/// One pushed batch that waits for its clock.
struct bsp_slot {
  batch_id batch;
  request_token source;               ///< Whose payload is summed: the first copy's.
  std::vector<request_token> waiting; ///< Copies to be acknowledged with it, in order of arrival.
  bool counted = false;               ///< Another table of the push was applied on arrival.
};

/// Invariants:
/// (1) every kept slot belongs to a clock in [clocks(), clocks() + clocks_ahead_max].
/// (2) a slot's source never changes: a second copy only waits with it.
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

  /// Keeps a slot, or adds a copy's token to it. Requires: neither applied nor too far.
  void keep(batch_id batch, request_token token, bool counted);

  /// Whether all slots of the next clock are there.
  bool complete() const;
  /// The slots kept of the next clock, in slot order.
  std::vector<bsp_slot> next() const;
  /// First slot of the next clock that is not there. Requires: not complete, a clock is left.
  batch_id first_missing() const;
  /// Forgets the slots of the next clock; applied: and counts it.
  void drop_next(bool applied);

  /// Whether this token's payload is the one to be summed.
  bool holds(request_token token) const;

private:
  job_spec job_;
  std::uint64_t clocks_;
  std::map<batch_id, bsp_slot> kept_;
};

} // namespace troupe
