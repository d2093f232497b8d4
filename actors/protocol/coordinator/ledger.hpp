// The ledger of batches: which were given out, to whom, and which have to be redone. A plain value
// without time or messages. It never decides what was applied: the partitions' marks do, and the
// ledger only compares itself with them.
#pragma once

#include "serialization/batch_set.hpp"
#include "serialization/job.hpp"
#include "serialization/messages.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace troupe {

struct ledger_options {
  /// Batches of one lease in ssp, asp; clocks of one lease in bsp. Smaller: less to redo after a
  /// death; larger: fewer messages. Near the end of the work leases shrink, so that all end
  /// together.
  std::uint32_t lease_batches = 16;
  /// Leases that a worker holds: the one it works on and those ahead.
  std::uint32_t leases_ahead = 2;
};

/// Every batch of the job is in one of these states:
///   untouched  never given out (>= cursor())
///   queued     to be redone, by anyone
///   leased     some worker holds it and nobody has reported it done
///   finished   reported done, or in the marks once and not any more; the marks will tell
///   settled    in the marks of every server
/// Invariants:
/// (1) a batch is open (not reported done) in at most one lease. Copies do not count: their batches
///     are somebody else's, and who reports one first has done it.
/// (2) a batch below cursor() that is not settled is queued, leased or finished; cursor() jumps
///     over nothing: what marks or believed leases skip is queued.
/// (3) bsp: new work is given out in groups of whole clocks, all slots of a group at once; a lease
///     is one slot of its clocks (stride = slots). So whatever a worker waits for, somebody holds.
class ledger {
public:
  explicit ledger(const job_spec& job, ledger_options options = {});

  /// Hands work to these (admitted) workers. What is queued goes first, smallest batch first, to
  /// those with the least to do: in bsp all of it at once (others may wait for it), else until each
  /// has leases_ahead leases' worth to do. New work only to workers below leases_ahead.
  /// `lease_max`: batches of one lease for workers that get less than lease_batches because they
  /// are slow; bsp ignores it. Lease ids are taken from `next_lease_id` on, which is moved on.
  /// Returns the workers whose leases changed.
  std::set<worker_id> hand_out(const std::vector<worker_id>& workers, std::uint64_t& next_lease_id,
                               const std::map<worker_id, std::uint32_t>& lease_max = {});

  /// What the worker has to do at once is all it keeps: its oldest lease, where that is not bsp
  /// only up to its first open batch. The rest is queued. Leases keep their ids and get shorter.
  /// Returns whether they changed.
  bool take_leases(worker_id worker);
  /// Who has most to do for its pace of those that can be relieved: they hold more than `lease_max`
  /// batches, in bsp more than one lease.
  std::optional<worker_id> overloaded(const std::map<worker_id, std::uint32_t>& lease_max) const;

  /// Gives `to` a copy of what is left of a lease of `from`, the one that is furthest behind, of at
  /// most `count_max` batches. Nothing where `to` has it already. Returns whether the leases of
  /// `to` changed. Requires: `to` holds nothing, or a copy, which it loses.
  bool copy(worker_id from, worker_id to, std::uint64_t& next_lease_id, std::uint32_t count_max);
  /// Whose batches it computes again, while some of them are still open.
  std::optional<worker_id> copied_by(worker_id worker) const;

  /// A worker's own list: progress on leases, and, while `rebuilding` (after a restart of the
  /// coordinator), leases that the ledger does not know and now believes, unless another worker
  /// holds an open batch of them. Otherwise unknown leases are ignored. A lease whose batches are
  /// all done is dropped. Returns whether the worker's leases changed. The lease of a batch that
  /// was done by copy begins behind it from then on: see take_shortened().
  bool progress(worker_id worker, const std::vector<lease_progress>& leases, bool rebuilding);

  /// Workers whose leases became shorter because others did their batches, since the last call.
  std::set<worker_id> take_shortened() { return std::exchange(shortened_, {}); }

  /// What the worker holds goes back to the queue, but for batches it reported done.
  void lost(worker_id worker);

  /// The batches that are in every server's marks, as last reported. Settles finished ones; those
  /// that were settled and are not in the marks any more count as finished until an audit.
  void settle(const batch_set& marks);
  /// Settles, then queues again what the marks lack: any batch below cursor() that is neither
  /// there, nor queued, nor leased. With `trust_finished`, the first audit that meets a finished
  /// batch leaves it alone (its marks may be on the way). Returns how many were queued.
  std::uint64_t audit(const batch_set& marks, bool trust_finished);
  /// A new history: only `marks` was done, nothing is held by anyone.
  void roll_back(const batch_set& marks);

  const std::vector<lease>& leases_of(worker_id worker) const;
  bool holds_work(worker_id worker) const;
  /// Of its own: no copy.
  bool owns_work(worker_id worker) const;
  /// Someone does.
  bool any_leased() const { return !leased_.empty(); }
  /// One past the largest batch ever given out.
  batch_id cursor() const;
  /// Batches not settled, not finished and not leased: what could still be handed out.
  std::uint64_t remaining() const;
  std::uint64_t settled() const;
  /// Batches settled or finished: acknowledged by every server at some time.
  batch_set acknowledged() const;
  bool complete() const; ///< Every batch is settled.

private:
  /// What one worker has; done[i][j] says that batch j of leases[i] was reported done.
  struct holding {
    std::vector<lease> leases;
    std::vector<std::vector<bool>> done;
    std::optional<worker_id> copy_of; ///< All of it is.

    void erase(std::size_t position);
    std::uint32_t first_open(std::size_t position) const;
    std::size_t furthest_behind() const;
  };

  bool believe(worker_id worker, const lease_progress& reported);
  bool record_done(holding& own, std::size_t position, const std::vector<batch_id>& done);
  void finish(std::uint64_t batch);
  void done_by_copy(std::uint64_t batch);
  bool cut(holding& own, std::size_t position, std::uint32_t count);
  void give_back(const lease& what, std::uint32_t from);
  bool has_open(const holding& copy) const;
  void raise_cursor(std::uint64_t end);
  void give(worker_id worker, const lease& what);
  lease take_queued(std::uint64_t count_max);
  void give_out_group(const std::vector<worker_id>& workers, std::uint64_t& next_lease_id,
                      std::set<worker_id>& changed);
  std::uint64_t load(worker_id worker) const;
  /// Least to do for its pace: load in leases of its own size.
  worker_id least_loaded(const std::vector<worker_id>& workers,
                         const std::map<worker_id, std::uint32_t>& lease_max = {}) const;
  std::uint64_t lease_max_of(worker_id worker,
                             const std::map<worker_id, std::uint32_t>& lease_max) const;
  worker_id fewest_leases(const std::vector<worker_id>& workers) const;
  std::uint64_t lease_size(std::size_t workers) const;
  bool valid(const lease& what) const;

  job_spec job_;
  ledger_options options_;
  std::uint64_t batches_ = 0;
  bool bsp_ = false; ///< Some table is bsp.
  std::uint64_t cursor_ = 0;
  batch_set settled_;
  std::set<std::uint64_t> queued_;
  std::map<std::uint64_t, bool> finished_;        ///< Value: an audit has met it.
  std::map<std::uint64_t, std::uint64_t> leased_; ///< Open batch to lease id.
  std::map<worker_id, holding> held_;
  std::set<worker_id> shortened_;
};

} // namespace troupe
