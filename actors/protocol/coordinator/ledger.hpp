// Records which batches were given out, to which workers, and which have to be redone. A plain
// value without time or messages. It never decides which batches are applied: the partitions record
// that, and the ledger only compares itself with them.
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
  /// Batches of one lease in ssp and asp; clocks of one lease in bsp. Smaller: less to redo after a
  /// death. Larger: fewer messages. Near the end of the work leases shrink, so that all end
  /// together.
  std::uint32_t lease_batches = 16;
  /// Leases that a worker holds: the one that it works on and those ahead.
  std::uint32_t leases_ahead = 2;
  /// Batches of an earlier term of which nothing is known count as finished: living workers may
  /// have applied them to copies of their own. An audit gives out the others.
  bool unknown_is_finished = false;
};

/// Finished batches that an audit leaves alone, though no server reports them applied.
enum class audit_trust : std::uint8_t {
  none,
  once,  ///< Those that no audit has met: their status may be on the way.
  living ///< These, and those of workers that live: they are applied in the worker's own copy.
};

/// Every batch of the job is in one of these states:
///   untouched  never given out (>= cursor())
///   queued     to be redone, by any worker
///   leased     a worker holds it, and no worker has reported it done
///   finished   reported done, or applied once and not any more; an audit will tell
///   settled    applied on every server
/// Invariants:
/// (1) a batch is open (not reported done) in at most one lease. Copies do not count: their batches
///     are another worker's, and the first report of a batch ends it. Held by: assert in give(),
///     believe(); check_open_batches() in cli/sim/job_desired.cpp.
/// (2) a batch below cursor() that is not settled is queued, leased or finished; cursor() skips no
///     batch: those that applied batches or adopted leases skip are queued. Held by: assert in
///     hand_out(), audit().
/// (3) bsp: new work is given out in groups of whole clocks, all slots of a group at once; a lease
///     is one slot of its clocks (stride = slots). So each batch that a worker waits for is held by
///     some worker. Held by: assert in give_out_group().
class ledger {
public:
  explicit ledger(const job_spec& job, ledger_options options = {});

  /// Hands work to these admitted workers. Queued batches go first, smallest first, to the workers
  /// with the least to do: in bsp all of them at once, as others may wait for them; else until each
  /// worker has leases_ahead leases' worth to do. New work goes only to workers below leases_ahead.
  /// `lease_max`: batches of one lease for workers that get less than lease_batches because they
  /// are slow; bsp ignores it. Lease ids are taken from `next_lease_id` on, which is moved on.
  /// Returns the workers whose leases changed.
  std::set<worker_id> hand_out(const std::vector<worker_id>& workers, std::uint64_t& next_lease_id,
                               const std::map<worker_id, std::uint32_t>& lease_max = {});

  /// Takes work back. The worker keeps only the lease with its smallest open batch and, if not bsp,
  /// only up to that batch. The rest is queued. Leases keep their ids and get shorter. Returns
  /// whether they changed.
  bool take_leases(worker_id worker);
  /// Returns the worker with the most to do for its pace among those that can give back work: they
  /// hold more than `lease_max` batches, in bsp more than one lease.
  std::optional<worker_id> overloaded(const std::map<worker_id, std::uint32_t>& lease_max) const;

  /// Gives `to` a copy of the rest of a lease of `from`, the one that is furthest behind, of at
  /// most `count_max` batches; no copy if `to` has it already. Returns whether the leases of `to`
  /// changed. Requires: `to` holds no lease, or a copy, which it loses.
  bool copy(worker_id from, worker_id to, std::uint64_t& next_lease_id, std::uint32_t count_max);
  /// Returns the worker whose batches it computes again, while some of them are still open.
  std::optional<worker_id> copied_by(worker_id worker) const;

  /// Takes a worker's progress on its leases. While `rebuilding`, after a restart of the
  /// coordinator, it also adopts leases that the ledger does not know, unless another worker holds
  /// an open batch of them; otherwise unknown leases are ignored. A lease whose batches are all
  /// done is dropped. Returns whether the worker's leases changed. The lease of a batch that was
  /// done by copy begins behind it from then on: see take_shortened().
  bool progress(worker_id worker, const std::vector<lease_progress>& leases, bool rebuilding);

  /// Returns the workers whose leases became shorter since the last call, because others did their
  /// batches.
  std::set<worker_id> take_shortened() { return std::exchange(shortened_, {}); }

  /// Queues the batches that the worker holds, except those that it reported done.
  void lost(worker_id worker);

  /// Takes the batches that are applied on every server, as last reported, and settles finished
  /// ones. Batches that were settled and are not applied any more count as finished until an audit.
  void settle(const batch_set& applied);
  /// Settles, then queues each batch below cursor() that is neither applied, queued nor leased.
  /// `trust` says which finished batches it leaves alone. Returns how many were queued.
  std::uint64_t audit(const batch_set& applied, audit_trust trust);
  /// Redoes unknown batches from now on: no living worker has one in its copy.
  void redo_unknown() { options_.unknown_is_finished = false; }
  /// Begins a new history: only the batches of `applied` are applied, and no worker holds a batch.
  void roll_back(const batch_set& applied);

  const std::vector<lease>& leases_of(worker_id worker) const;
  bool holds_work(worker_id worker) const;
  /// Returns whether the worker holds work of its own, not a copy.
  bool owns_work(worker_id worker) const;
  /// Returns whether some worker holds an open batch.
  bool any_leased() const { return !leased_.empty(); }
  /// Returns one past the largest batch ever given out.
  batch_id cursor() const;
  /// Returns the number of batches that could still be handed out: not settled, finished or leased.
  std::uint64_t remaining() const;
  /// Returns whether an idle worker gets others' leases before new work: none is left, or (bsp) its
  /// clocks come after those of the leases.
  bool others_first() const { return by_clocks_ || remaining() == 0; }
  std::uint64_t settled() const;
  /// Returns the batches settled or finished: acknowledged by every server at some time.
  batch_set acknowledged() const;
  bool complete() const; ///< Every batch is settled.

private:
  /// The leases of one worker; done[i][j] says that batch j of leases[i] was reported done.
  struct holding {
    std::vector<lease> leases;
    std::vector<std::vector<bool>> done;
    std::optional<worker_id> copy_of; ///< Set if all of it is a copy.

    void erase(std::size_t position);
    std::uint32_t first_open(std::size_t position) const;
    std::size_t furthest_behind() const;
  };

  bool believe(worker_id worker, const lease_progress& reported);
  bool record_done(worker_id by, holding& own, std::size_t position,
                   const std::vector<batch_id>& done);
  void finish(std::uint64_t batch, worker_id by);
  void done_by_copy(std::uint64_t batch, worker_id by);
  bool cut(holding& own, std::size_t position, std::uint32_t count);
  void give_back(const lease& what, std::uint32_t from);
  bool has_open(const holding& copy) const;
  void raise_cursor(std::uint64_t end);
  void give(worker_id worker, const lease& what);
  lease take_queued(std::uint64_t count_max);
  void give_out_group(const std::vector<worker_id>& workers, std::uint64_t& next_lease_id,
                      std::set<worker_id>& changed);
  std::uint64_t load(worker_id worker) const;
  /// Returns the worker with the least to do for its pace: load in leases of its own size.
  worker_id least_loaded(const std::vector<worker_id>& workers,
                         const std::map<worker_id, std::uint32_t>& lease_max = {}) const;
  std::uint64_t lease_max_of(worker_id worker,
                             const std::map<worker_id, std::uint32_t>& lease_max) const;
  worker_id fewest_leases(const std::vector<worker_id>& workers) const;
  std::uint64_t lease_size(std::size_t workers) const;
  bool valid(const lease& what) const;
  /// Returns whether as many batches have a state as there are below cursor_.
  bool knows_all() const;

  job_spec job_;
  ledger_options options_;
  std::uint64_t batches_ = 0;
  bool by_clocks_ = false;
  std::uint64_t cursor_ = 0;
  batch_set settled_;
  std::set<std::uint64_t> queued_;
  struct finished_batch {
    bool is_met = false;              ///< An audit has met it.
    std::optional<worker_id> by = {}; ///< The worker that reported it; none: it was lost since.
  };
  std::map<std::uint64_t, finished_batch> finished_;
  std::map<std::uint64_t, std::uint64_t> leased_; ///< Open batch to lease id.
  std::map<worker_id, holding> held_;
  std::set<worker_id> shortened_;
};

} // namespace troupe
