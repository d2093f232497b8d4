// Decides which workers take part and with which batches: admits them into the servers' clock
// vectors, hands out leases at their pace, and carries out the measures against slow ones. A plain
// state machine, part of the coordinator.
#pragma once

#include "actors/protocol/coordinator/ledger.hpp"
#include "actors/protocol/coordinator/membership.hpp"
#include "actors/protocol/coordinator/shard_recovery.hpp"
#include "actors/protocol/coordinator/straggler_detector.hpp"
#include "base/clock.hpp"
#include "serialization/messages.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// The stages of a worker on its way into the servers' clock vectors, and out again:
///
///     out --work to do--> candidate --promised by all servers--> admitted --no work--> leaving
///      ^-----------------------listed by no server any more------------------------------|
enum class admission_stage : std::uint8_t { out, candidate, admitted, leaving };

/// A present worker.
struct worker_state {
  worker_status report;
  admission_stage stage = admission_stage::out;
  std::uint64_t start_clock = 0;
  bool adopted = false; ///< An earlier coordinator had admitted it.
  /// Measured by this clock, over the last stretch that ended; nullopt before the first.
  std::optional<double> batches_per_second;
  std::uint64_t pace_base = 0; ///< Acknowledged pushes when the present stretch began.
  time_point pace_since{0};    ///< When the present stretch began.

  straggler_measure measure = straggler_measure::full; ///< The measure that was carried out last.
  worker_progress step;                                ///< Progress at its last new step.
  time_point step_at{0};                               ///< When that status came.
  time_point step_time{0}; ///< Mean time of the steps before that, without waiting.
};

/// The state of the job at one moment, as far as workers depend on it.
struct work_conditions {
  const membership& members;
  const std::vector<shard_state>& shards;
  generation_id generation;
  bool rolling_back = false; ///< All shards go back, and some of them do not serve yet.
  bool may_work = false;     ///< Workers may get leases.
  time_point training_since{0};
  time_point now{0};
};

/// Invariants:
/// (1) a worker gets leases only after the head of every shard reported its incarnation as known.
///     Held by: assert in hand_out().
/// (2) it begins with a clock that no shard and no admitted worker has passed. Held by: assert in
///     admit().
/// (3) a demoted worker, and a worker beyond those that the job needs, gets copies of the slowest
///     workers' batches; no clock waits for it. Held by: assert in copy_slowest().
/// (4) lease ids begin with the coordinator's term, so that none repeats an earlier one. Held by:
///     assert in worker_admission(); check_leases() in cli/sim/job_desired.cpp.
/// After a restart the straggler detector begins anew, with no worker evicted.
class worker_admission {
public:
  /// `lease_time`: a lease should take a worker no longer.
  worker_admission(const job_spec& job, ledger_options leases, std::chrono::milliseconds lease_time,
                   const std::optional<straggler_options>& stragglers, std::uint64_t term);

  /// Takes a new incarnation of a worker. Returns the events of the straggler detector.
  straggler_events on_join(worker_id worker, const std::string& host, time_point now);
  /// Queues the lost worker's batches again. Returns their number.
  std::uint64_t on_lost(worker_id worker, time_point now);
  /// Takes the worker's status, but not its leases.
  void hear(worker_id worker, const worker_status& body, time_point now);
  /// Takes the progress on the leases of the last status, which must be of the present generation.
  /// While `recovering`, a worker that holds work counts as admitted.
  void take_progress(worker_id worker, bool recovering);
  /// Sets all start clocks to 0: a worker's clock begins anew with a generation of the job.
  void reset_clocks();

  /// Takes all leases back, as the work ends. The next decide() then releases the workers, if they
  /// may not work.
  void take_all_leases();

  /// Admits, hands out and releases. It may run at any time, any number of times.
  void decide(const work_conditions& now_valid);

  /// Runs a round of the straggler detector. Each event is to be carried out.
  straggler_events detect_stragglers(time_point now);
  /// Carries out the event's measure. Returns whether the worker's incarnation has to end.
  bool carry_out(const straggler_event& event);

  /// Returns the workers whose leases changed since the last call.
  std::set<worker_id> take_outdated() { return std::exchange(outdated_, {}); }

  const std::map<std::uint32_t, worker_state>& all() const { return workers_; }
  /// Returns the number of workers that the job waits for at its start.
  std::uint32_t expected() const { return regular_ + backups_; }
  /// Returns the number of changes of the workers in servers' desired states.
  std::uint64_t roster() const { return roster_; }
  straggler_measure measure_of(worker_id worker) const;
  /// Returns whether the process of a present worker has computed a batch.
  bool any_has_worked() const;
  ledger& batches() { return ledger_; }
  const ledger& batches() const { return ledger_; }

private:
  /// The workers that may work now, in ascending order.
  struct worker_pool {
    std::vector<worker_id> regular; ///< They get work of their own.
    std::vector<worker_id> backup;  ///< They get copies of that work; no clock waits for them.
    bool more_to_come = false;
  };

  void admit(const work_conditions& now_valid);
  worker_pool available_workers(const membership& members) const;
  void hand_out(const worker_pool& all, const work_conditions& now_valid);
  void copy_work(const worker_pool& all, time_point now);
  void copy_slowest(worker_id backup, std::set<worker_id>& copied, time_point now);
  void release_idle(const work_conditions& now_valid);
  bool any_work() const;
  bool has_work_for(worker_id worker, bool any, const work_conditions& now_valid) const;
  std::map<worker_id, std::uint32_t> lease_limits() const;
  std::optional<std::uint64_t> slowest_clock(generation_id generation) const;
  time_point step_time(worker_id worker, time_point now) const;
  void set_stage(worker_state& worker, admission_stage to);

  std::uint32_t regular_;
  std::uint32_t backups_;
  std::uint32_t copied_batches_max_; ///< In ssp and asp one: a copy most likely comes too late.
  std::chrono::milliseconds lease_time_;

  std::map<std::uint32_t, worker_state> workers_;
  std::optional<straggler_detector> detector_;
  ledger ledger_;
  std::uint64_t next_lease_ = 1;
  std::uint64_t roster_ = 0;
  std::set<worker_id> outdated_;
};

} // namespace troupe
