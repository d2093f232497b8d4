// Decides membership, placement of chains, work, checkpoints and the end of the job. A plain state
// machine. Members send their whole state (status) and get their whole desired state. So a lost
// message, a repeated message and a restart of the coordinator are one case: the next status.
#pragma once

#include "actors/protocol/coordinator/checkpoint_schedule.hpp"
#include "actors/protocol/coordinator/coordinator_effects.hpp"
#include "actors/protocol/coordinator/desired_states.hpp"
#include "actors/protocol/coordinator/membership.hpp"
#include "actors/protocol/coordinator/placement.hpp"
#include "actors/protocol/coordinator/replica_checks.hpp"
#include "actors/protocol/coordinator/shard_recovery.hpp"
#include "actors/protocol/coordinator/worker_admission.hpp"
#include "base/clock.hpp"
#include "serialization/messages.hpp"
#include "serialization/stored_state.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

namespace troupe {

struct coordinator_options {
  ledger_options ledger;
  /// A lease should take a worker no longer than this, so that a slow worker holds little when the
  /// work runs out. Shorter: more messages.
  std::chrono::milliseconds lease_time{100};
  /// A member that sends no status for this time is dead. Must exceed many status intervals (100
  /// ms). A server that may hold the only copy of a shard is waited for longer.
  std::chrono::milliseconds liveness_timeout{5000};
  /// A server that sends no status for this time is replaced in its chains, if other replicas have
  /// its state. Must exceed chain_options::lease_time by more than clocks differ.
  std::chrono::milliseconds silence_timeout{1300};
  /// A lost chain waits this long for its servers to start again before other servers take it.
  std::chrono::milliseconds return_timeout{10'000};
  /// Work begins when all workers of the job have joined, or this long after the first one.
  std::chrono::milliseconds gather_timeout{15'000};
  /// After a restart, absence of a member means nothing before this time has passed.
  std::chrono::milliseconds recovery_timeout{3000};
  /// A finished batch that is not applied on all servers after this time is given out again.
  std::chrono::milliseconds audit_grace{1000};
  checkpoint_options checkpointing;
  /// Nullopt: no straggler detection.
  std::optional<straggler_options> stragglers;
  bool checkpoints = true; ///< False: only members' memory (threads without a directory, hogwild).
  bool resume = false;     ///< Start from the newest good checkpoint rather than from nothing.
  std::uint32_t index = 0; ///< Index of this coordinator.
  std::uint64_t directory_mark = 0; ///< Mark of the checkpoint directory; 0: none.
};

/// Invariants, beside those of its parts:
/// (1) at most one incarnation of each (role, index) is a member; a dead one never comes back. Held
///     by: assert in membership::hear(), membership::mark_dead().
/// (2) desired states of one term have growing sequences, and are a function of the state. Held by:
///     assert in send().
/// (3) the job is finished only when every batch is applied on every chain, and (with checkpoints)
///     the last checkpoint was committed after that. Held by: assert in finish(); check_finished()
///     in cli/sim/job_checks.cpp.
/// (4) the job is ended only by the main launcher (observer 0); others report deaths. Held by:
///     assert in take().
/// (5) a worker that the straggler detector evicts has no incarnation in the servers' lists and no
///     leases. Held by: assert in detect_stragglers().
/// (6) after a restart no desired state is sent before every member of the job has reported or
///     recovery_timeout has passed. So the members' state is known before anything new is decided.
///     Held by: assert in send().
/// (7) when a server is asked for the last cut of a stopped job, no worker may push to it any more;
///     in bsp no worker holds a batch after the clock of that cut. Held by: assert in finish();
///     check_stopped() in cli/sim/job_checks.cpp.
/// (8) a member is told of the present members that listen and that its role may connect to,
///     and of no others. Held by: assert in send(); check_desired() in cli/sim/job_desired.cpp.
///
///     gathering --all serve, workers came--> training --complete--> finishing --saved--> finished
///                                               ^-----------a chain lost batches---------------|
///     any --failed--> stopped       finished --observer 0 is done--> stopped
///     training, finishing --stop--> finishing --committed, or 10 s--> stopped
class coordinator {
public:
  /// `stored`: the state that the last coordinator of this directory persisted (term 0: none). The
  /// new coordinator serves under stored.term + 1, and persists that first. `last_checkpoint`:
  /// largest number used.
  coordinator(job_spec job, coordinator_options options, storage::coordinator_state stored,
              std::uint64_t last_checkpoint, time_point now, coordinator_effects& effects);

  void receive(const status_message& what, time_point now, coordinator_effects& effects);
  /// Applies deadlines; call it about every 20 ms.
  void tick(time_point now, coordinator_effects& effects);
  /// Notes that a member's connection ended: a hint, not a proof of its death.
  void disconnected(const member_id& member, time_point now, coordinator_effects& effects);
  void checkpoint_found(const storage::checkpoint_search_result& what, time_point now,
                        coordinator_effects& effects);
  /// Searches again after 1 s if the error may pass (peer_lost, timed_out, io_failed); other errors
  /// fail the job. An error never makes the job start over.
  void search_failed(const failure& why, time_point now, coordinator_effects& effects);
  void checkpoint_committed(std::uint64_t checkpoint, const result<void>& outcome, time_point now,
                            coordinator_effects& effects);
  /// Notes that a committed checkpoint was read again, and is damaged or cannot be read.
  void scrub_failed(const failure& why, coordinator_effects& effects);
  /// Fails the job, because an effect that it cannot go on without could not be carried out.
  void give_up(const std::string& why, time_point now, coordinator_effects& effects);

  job_phase phase() const { return phase_; }
  /// Returns the number of batches that are applied on every server.
  std::uint64_t batches_settled() const { return workers_.batches().settled(); }
  /// Returns the number of desired states made so far, sent or not.
  std::uint64_t desired_made() const { return desired_made_; }

private:
  /// The parts of the state that more than one member is told: phase, configuration, whether shards
  /// roll back, checkpoint and its clock, and the numbers of events, placements and rosters. When
  /// one changes, all desired states are made anew; else only those of workers with new leases.
  using common_parts = std::tuple<job_phase, config_id, bool, std::uint64_t, std::uint64_t,
                                  std::uint64_t, std::uint64_t, std::uint64_t>;
  using effects_ref = coordinator_effects&;

  // -- coordinator.cpp: members, phases, checkpoints, desired states --
  void take(const member_id& from, const worker_status& body, time_point now, effects_ref effects);
  void take(const member_id& from, const server_status& body, time_point now, effects_ref effects);
  void take(const member_id& from, const observer_status& body, time_point now,
            effects_ref effects);
  void take(const member_id& from, const actor_status& body, time_point now, effects_ref effects);
  bool may_belong(const member_id& who) const;
  void on_join(const status_message& what, time_point now, effects_ref effects);
  void take_in(const member_id& who, const worker_status& body, time_point now,
               effects_ref effects);
  void take_in(const member_id& who, const server_status& body, time_point now,
               effects_ref effects);
  void take_in(const member_id& who, const observer_status& body, time_point now,
               effects_ref effects);
  void take_in(const member_id& who, const actor_status& body, time_point now, effects_ref effects);
  void on_member_lost(const member_id& who, const std::string& why, time_point now,
                      effects_ref effects);
  void detect_stragglers(time_point now, effects_ref effects);
  void notice_pause(time_point now);
  void decide(time_point now, effects_ref effects);
  void end_recovery(time_point now, effects_ref effects);
  void advance_phase(time_point now, effects_ref effects);
  void begin_training(time_point now, effects_ref effects);
  void finish(time_point now, effects_ref effects);
  bool waits_for_actors(time_point now) const;
  void name_unstopped(coordinator_effects& effects);
  void fail(const std::string& why, effects_ref effects);
  void stop(time_point now, effects_ref effects);
  void name_missing(effects_ref effects);
  void run_checkpoints(time_point now, effects_ref effects);
  void collect_parts(time_point now, effects_ref effects);
  void checkpoint_failed(const std::string& why, time_point now, effects_ref effects);
  void refresh_view();
  void send_changed(time_point now, effects_ref effects);
  void answer(const member_id& who, time_point now, effects_ref effects);
  void send(member_entry& to, desired_state what, time_point now, effects_ref effects);
  void reject_member(const member_id& who, std::optional<failure> why, effects_ref effects);
  cluster_state cluster() const;
  std::optional<batch_id> work_end() const;
  desired_state make_desired(const member_id& who);
  recovery_context recovery(time_point now, effects_ref effects);
  ledger& batches() { return workers_.batches(); }
  checkpoint_schedule::position position() const { return shards_.position(workers_.batches()); }
  void notify(job_event what, effects_ref effects) { events_.add(std::move(what), effects); }
  void notify_once(const member_id& about, job_event what, effects_ref effects);
  void persist(effects_ref effects) { effects.push_back(persist_effect{state_}); }

  // -- coordinator_servers.cpp: presence and placement of servers, added and drained ones --
  bool hear(const member_id& from, const server_status& body, time_point now, effects_ref effects);
  bool is_dispensable(const member_id& who) const;
  bool acts_in_a_chain(const member_id& who) const;
  void detect_silent_servers(time_point now, effects_ref effects);
  void detect_unheard(const member_id& who, time_point now, effects_ref effects);
  void on_server_lost(const member_id& who, time_point now, effects_ref effects);
  std::set<server_id> expected_servers(time_point now) const;
  void place_shards(time_point now, effects_ref effects);
  std::set<server_id> slots() const { return servers_of(job_, state_); }
  void reconcile(const member_id& from, const resize& wanted, time_point now, effects_ref effects);
  result<void> check(const resize& wanted) const;
  void assign_slot(const server_id& server, time_point now, effects_ref effects);
  void settle_newcomers(time_point now, effects_ref effects);
  void release_drained(time_point now, effects_ref effects);

  job_spec job_;
  coordinator_options options_;
  std::uint64_t fingerprint_ = 0;
  bool recovering_ = false; ///< The members' state is not known again yet, after a restart.
  storage::coordinator_state state_; ///< As persisted.

  job_phase phase_ = job_phase::gathering;
  std::optional<failure> failed_;
  time_point started_at_{0};
  time_point last_call_{0};
  std::optional<time_point> first_worker_at_;
  time_point training_since_{0};
  bool missing_named_ = false; ///< An event named the missing members, while gathering.
  bool stop_wanted_ = false;   ///< The user asked to end.
  std::optional<time_point> stop_deadline_; ///< Set once the stop is under way.
  time_point winds_down_since_{0};          ///< When it last began to finish.
  bool done_ = false;                       ///< The main observer needs no more answers.
  /// Time of the last status of the main observer, or the begin of `finished`.
  time_point observed_at_{0};

  membership members_;
  std::set<member_id> unknown_members_; ///< Members of another job; one event tells of each.
  std::set<member_id> notified_;        ///< Members that had their event; at most one for each.
  std::set<member_id> seen_;            ///< Slots whose first member has come.
  std::map<std::uint32_t, server_entry> servers_; ///< The present servers.
  std::map<std::uint32_t, actor_entry> actors_;
  std::map<std::uint32_t, time_point> gone_; ///< Absent servers, and since when.
  std::set<server_id> newcomers_; ///< Added servers that do not have their share of the chains yet.
  placement placement_;
  worker_admission workers_;
  shard_recovery shards_;
  replica_checks checks_;

  checkpoint_schedule schedule_;
  /// The checkpoint that was begun after the last batch, or after stop; 0: none.
  std::uint64_t last_checkpoint_ = 0;
  std::uint32_t last_failures_ = 0;
  time_point last_retry_at_{0};

  view view_;
  event_journal events_;
  /// Number of changes of records, servers or members that listen.
  std::uint64_t placements_ = 0;
  std::uint64_t next_desired_ = 1;
  std::optional<common_parts> sent_common_;
  std::uint64_t desired_made_ = 0;
};

} // namespace troupe
