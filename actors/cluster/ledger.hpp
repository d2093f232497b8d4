// The ledger of batches: which were given out, to whom, and which have to be redone. A plain value
// without time or messages. It never decides what was applied: the partitions' marks do, and the
// ledger only compares itself with them.
#pragma once

#include "serialization/batch_set.hpp"
#include "serialization/job.hpp"
#include "serialization/messages.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <vector>

namespace troupe {

struct ledger_options {
  /// Batches of one lease in ssp, asp; clocks of one lease in bsp. Smaller: less to redo after a
  /// death; larger: fewer messages. Near the end of the work leases shrink, so that all end together.
  std::uint32_t lease_batches = 16;
  /// Leases that a worker holds: the one it works on and those ahead.
  std::uint32_t leases_ahead = 2;
};

/// Every batch below batches() is in one of these states:
///   untouched  never given out (>= cursor())
///   queued     to be redone, by anyone
///   leased     some worker holds it and has not reported it done
///   finished   reported done; the marks will tell
///   settled    in the marks of every server
/// Invariants:
/// (1) a batch is in at most one worker's unfinished leases.
/// (2) a batch below cursor() that is not settled is queued, leased or finished.
/// (3) bsp: a lease is a slot of consecutive clocks (stride = slots); all slots of a clock are given
///     out before any slot of a later group.
class ledger {
public:
  explicit ledger(const job_spec& job, ledger_options options = {});

  /// Hands work to these (admitted) workers. All that is queued is given out at once, smallest batch
  /// first, to those with the least to do; new work only to workers below leases_ahead. Lease ids are
  /// taken from `next_lease_id` on, which is moved on. Returns the workers whose leases changed.
  std::set<worker_id> hand_out(const std::vector<worker_id>& workers, std::uint64_t& next_lease_id);

  /// A worker's own list: progress on leases, and (after a restart of the coordinator) leases that the
  /// ledger does not know and now believes. A lease whose batches are all done is dropped. Leases
  /// below `lease_id_floor` that are unknown are believed only while `rebuilding`.
  /// Returns whether the worker's leases changed.
  bool progress(worker_id worker, const std::vector<lease_progress>& leases, bool rebuilding);

  /// What the worker holds goes back to the queue, but for batches it reported done.
  void lost(worker_id worker);

  /// The batches that are in every server's marks, as last reported. Settles finished ones.
  void settle(const batch_set& marks);
  /// Compares with the marks: any batch below cursor() that is neither there, nor queued, nor leased,
  /// is queued again. With `trust_finished`, finished ones are left alone (their marks may be on the
  /// way). Returns how many were queued.
  std::uint64_t audit(const batch_set& marks, bool trust_finished);
  /// A new history: only `marks` was done, nothing is held by anyone.
  void roll_back(const batch_set& marks);

  const std::vector<lease>& leases_of(worker_id worker) const;
  bool holds_work(worker_id worker) const;
  /// One past the largest batch ever given out.
  batch_id cursor() const;
  /// Batches not settled, not finished and not leased: what could still be handed out.
  std::uint64_t remaining() const;
  std::uint64_t settled() const;
  bool complete() const; ///< Every batch is settled.

  // The members are the implementer's to choose.
};

} // namespace troupe
