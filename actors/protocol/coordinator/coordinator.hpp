// Decides membership, placement of chains, work, checkpoints and the end of the job. A plain state
// machine. Members send their whole state (status) and get their whole desired state. So a lost
// message, a repeated message and a restart of the coordinator are one case: the next status.
#pragma once

#include "actors/protocol/coordinator/checkpoint_schedule.hpp"
#include "actors/protocol/coordinator/ledger.hpp"
#include "actors/protocol/coordinator/membership.hpp"
#include "actors/protocol/coordinator/placement.hpp"
#include "actors/protocol/coordinator/straggler_detector.hpp"
#include "base/clock.hpp"
#include "serialization/messages.hpp"
#include "serialization/stored_state.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

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

// -- effects --
struct send_effect {
  troupe::desired_state desired_state;
};
/// Find the newest good checkpoint, then call checkpoint_found() or search_failed().
struct find_checkpoint_effect {
  std::vector<std::uint64_t> unreadable; ///< Pass these over: servers could not read them.
};
/// Commit this checkpoint (and apply retention), then call checkpoint_committed().
struct commit_checkpoint_effect {
  storage::manifest manifest;
};
/// Store this state before the later effects are carried out.
struct persist_effect {
  storage::coordinator_state state;
};
/// One line for the log and the display.
struct event_effect {
  job_event what;
};

using coordinator_effect = std::variant<send_effect, find_checkpoint_effect,
                                        commit_checkpoint_effect, persist_effect, event_effect>;
using coordinator_effects = std::vector<coordinator_effect>;

/// Invariants:
/// (1) at most one incarnation of each (role, index) is a member; a dead one never comes back.
/// (2) a worker gets leases only after the head of every chain reported its incarnation as known.
/// (3) desired states of one term have growing sequences, and are a function of the state.
/// (4) jobs with a bsp table: when a chain is lost, the generation grows and all chains begin again
///     with the same checkpoint; other jobs: only the lost chain does.
/// (5) the job is finished only when every batch is applied on every chain, and (with checkpoints)
///     the last checkpoint was committed after that.
/// (6) the job is ended only by the main launcher (observer 0); others report deaths.
/// (7) a worker that the straggler detector puts out has no incarnation in the servers' lists and
///     no leases. After a restart the detector begins anew, with no worker out.
/// (8) after a restart no desired state is sent before every member of the job has reported or
///     recovery_timeout has passed. So the members' state is known before anything new is decided.
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
  void checkpoint_found(const storage::found& what, time_point now, coordinator_effects& effects);
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
  /// Returns the number of desired states made so far, sent or not.
  std::uint64_t desired_made() const { return desired_made_; }

private:
  /// The stages of a worker on its way into the servers' clock vectors, and out again:
  ///
  ///     out --work to do--> candidate --promised by all servers--> admitted --no work--> leaving
  ///      ^-----------------------listed by no server any more------------------------------|
  enum class admission : std::uint8_t { out, candidate, admitted, leaving };

  struct worker_state {
    worker_status report;
    admission stage = admission::out;
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

  /// The present incarnation of a server.
  struct server_state {
    member_id id;
    server_status report;      ///< Its newest status.
    time_point trusted_at{0};  ///< When its last status came that counts as a sign of life.
    std::uint64_t echo_ns = 0; ///< The stamp of that status.
  };

  /// The state of a chain beside its record.
  struct chain_state {
    std::optional<member_id> head; ///< Head of the active configuration, while it is alive.
    replica_status report;         ///< The newest status of the head.
    bool serving = false;          ///< The head has the state that it should have.
    bool started = false;          ///< It has a history: begin with a checkpoint.
    bool to_begin = false;         ///< Another generation of it has to begin: this one is over.
    bool restored = false;         ///< Its generation began with a checkpoint, and the rolled back
                                   ///< updates were not counted.
    batch_set lost_marks;          ///< Applied batches of the generation before.
    std::uint32_t lost_by = 0;     ///< The server that led that generation.
  };

  /// The part of the desired state that more than one member gets. When it changes, all desired
  /// states are made anew; else only those of members whose leases changed.
  struct common_desired {
    job_phase phase = job_phase::gathering;
    config_id config;
    bool frozen = false;
    std::uint64_t checkpoint = 0;
    std::uint64_t checkpoint_clock = 0;
    std::uint64_t events = 0;
    std::uint64_t placements = 0;
    std::uint64_t roster = 0;

    bool operator==(const common_desired&) const = default;
  };

  using effects_ref = coordinator_effects&;

  // -- coordinator.cpp: events, phases --
  void take(const member_id& from, const worker_status& body, time_point now, effects_ref effects);
  void take(const member_id& from, const server_status& body, time_point now, effects_ref effects);
  void take(const member_id& from, const observer_status& body, time_point now,
            effects_ref effects);
  bool may_belong(const member_id& who) const;
  void welcome(const status_message& what, time_point now, effects_ref effects);
  void decide(time_point now, effects_ref effects);
  void end_recovery(time_point now, effects_ref effects);
  void advance_phase(time_point now, effects_ref effects);
  void begin_training(time_point now, effects_ref effects);
  void finish(time_point now, effects_ref effects);
  void fail(const std::string& why, effects_ref effects);
  void stop(time_point now, effects_ref effects);
  void tell_who_is_missing(effects_ref effects);
  void notify(job_event what, effects_ref effects);
  void notify_once(const member_id& about, job_event what, effects_ref effects);
  void persist(effects_ref effects);
  void notice_pause(time_point now);

  // -- coordinator_servers.cpp: presence of servers, generations of chains, the view --
  void lose(const member_id& who, const std::string& why, time_point now, effects_ref effects);
  void lose_server(const member_id& who, time_point now);
  void miss_servers(time_point now, effects_ref effects);
  void miss_unheard(const member_id& who, time_point now, effects_ref effects);
  bool hear(const member_id& from, const server_status& body, time_point now, effects_ref effects);
  bool can_be_missed(const member_id& who) const;
  void hear_of_chain(const member_id& from, const replica_status& what, time_point now,
                     effects_ref effects);
  void suspect(const member_id& from, const replica_status& what, time_point now,
               effects_ref effects);
  void place_chains(time_point now, effects_ref effects);
  void abandon(std::uint32_t chain, time_point now, effects_ref effects);
  void roll_all_back(std::uint32_t index, time_point now, effects_ref effects);
  bool begin_chains(effects_ref effects);
  void follow_records(time_point now);
  std::set<server_id> expected_servers(time_point now) const;
  bool acts_in_a_chain(const member_id& who) const;
  void begin_serving(std::uint32_t chain, effects_ref effects);
  bool all_serving() const;
  void refresh_view();

  // -- coordinator_resize.cpp: servers that are added and drained --
  std::set<server_id> slots() const;
  void reconcile(const member_id& from, const resize& wanted, time_point now, effects_ref effects);
  std::string rejection_to(const resize& wanted) const;
  void assign_slot(const server_id& server, time_point now, effects_ref effects);
  void welcome_server(const member_id& who, time_point now, effects_ref effects);
  void settle_newcomers(time_point now, effects_ref effects);
  void release_drained(time_point now, effects_ref effects);

  // -- coordinator_checkpoints.cpp: applied batches and checkpoints --
  void count_rolled_back(std::uint32_t chain, const batch_set& before, const batch_set& after,
                         effects_ref effects);
  void compare_marks(time_point now, effects_ref effects);
  void begin_generation(time_point now, effects_ref effects);
  void audit_overdue(time_point now, effects_ref effects);
  void run_checkpoints(time_point now, effects_ref effects);
  void collect_parts(time_point now, effects_ref effects);
  void checkpoint_failed(const std::string& why, time_point now, effects_ref effects);
  checkpoint_schedule::position position() const;
  std::uint64_t clocks_of(const batch_set& marks) const;
  batch_set common_marks() const;

  // -- coordinator_workers.cpp: admission and leases --
  /// The workers that may work now, in ascending order.
  struct worker_pool {
    std::vector<worker_id> regular; ///< They get work of their own.
    std::vector<worker_id> backup;  ///< They get copies of that work; no clock waits for them.
    bool more_to_come = false;
  };
  worker_pool available_workers() const;
  std::uint32_t workers_expected() const { return job_.workers + job_.backup_workers; }
  bool any_work() const;
  std::map<worker_id, std::uint32_t> lease_limits() const;
  void admit_workers();
  void hand_out(const worker_pool& all, time_point now);
  void release_idle_workers();
  void set_stage(worker_state& worker, admission to);
  void outdate(worker_id worker);
  void measure_pace(worker_state& worker, time_point now) const;
  bool work_may_go_on() const;
  bool listed_anywhere(const member_id& worker) const;
  bool is_unbound(const member_id& worker) const;
  std::optional<std::uint64_t> promised_clock(const member_id& worker) const;
  std::optional<std::uint64_t> slowest_clock() const;

  // -- coordinator_stragglers.cpp: detection of slow workers, and measures against them --
  void detect_stragglers(time_point now, effects_ref effects);
  void carry_out(const straggler_event& event, time_point now, effects_ref effects);
  void evict(std::uint32_t index, time_point now, effects_ref effects);
  void hear_progress(worker_state& worker, worker_id id, time_point now);
  time_point step_time(worker_id worker, time_point now) const;
  straggler_measure measure_of(worker_id worker) const;
  bool has_work_for(worker_id worker, bool any) const;
  void copy_work(time_point now);
  void copy_slowest(worker_id backup, std::set<worker_id>& copied, time_point now);

  // -- coordinator_orders.cpp: desired states of members --
  void send_changed(time_point now, effects_ref effects);
  void answer(const member_id& who, time_point now, effects_ref effects);
  void send(member_entry& to, desired_state what, time_point now, effects_ref effects);
  void reject_member(const member_id& who, const std::string& why, effects_ref effects);
  desired_state desired_for(const member_id& who);
  desired_worker desired_for_worker(std::uint32_t index) const;
  desired_server desired_for_server(const member_id& who) const;
  job_status status_for_observer() const;
  member_status status_of_server(std::uint32_t index, bool over) const;
  std::vector<member_status> statuses() const;

  job_spec job_;
  coordinator_options options_;
  storage::coordinator_state state_; ///< As persisted.
  std::uint64_t fingerprint_ = 0;
  bool bsp_ = false;

  job_phase phase_ = job_phase::gathering;
  std::string failed_;
  bool recovering_ = false;
  time_point started_at_{0};
  time_point last_call_{0};
  std::optional<time_point> first_worker_at_;
  time_point training_since_{0};
  bool waiting_told_ = false;               ///< The missing members were named, while gathering.
  bool stop_wanted_ = false;                ///< The user asked to end.
  std::optional<time_point> stop_deadline_; ///< Set once the stop is under way.
  bool done_ = false;                       ///< The main observer needs no more answers.
  /// Time of the last status of the main observer, or the begin of `finished`.
  time_point observed_at_{0};

  membership members_;
  std::map<std::uint32_t, worker_state> workers_;
  std::map<std::uint32_t, server_state> servers_; ///< The present servers.
  std::map<std::uint32_t, time_point> gone_;      ///< Absent servers, and since when.
  std::set<server_id> newcomers_; ///< Added servers that do not have their share of the chains yet.
  std::map<std::uint32_t, std::uint64_t> rolled_back_; ///< Updates that were lost, for each server.
  placement placement_;
  std::vector<chain_state> chains_;
  std::set<member_id> unknown_members_; ///< Members of another job; one event tells of each.
  std::set<member_id> notified_;        ///< Members that had their event; at most one for each.
  std::set<std::pair<role, std::uint32_t>> seen_;

  std::optional<straggler_detector> detector_;
  ledger ledger_;
  std::uint64_t next_lease_ = 1;
  std::uint64_t placements_ = 0; ///< Number of changes of records, servers or addresses.
  std::uint64_t next_desired_ = 1;
  std::uint64_t roster_ = 0; ///< Number of changes of the workers in servers' desired states.
  std::optional<common_desired> told_;
  std::uint64_t desired_made_ = 0;
  bool frozen_ = false; ///< bsp: history was rolled back, and not all chains serve it yet.
  std::optional<std::uint32_t> rollback_cause_; ///< The chain whose loss rolled all back.
  batch_set acknowledged_;                      ///< Batches acknowledged before that.
  bool marks_changed_ = false;
  bool audit_needed_ = false; ///< Applied batches went back: finished batches cannot be trusted.
  time_point audited_at_{0};

  bool finding_ = false;
  bool search_failing_ = false; ///< An event told that the search fails.
  std::optional<time_point> search_again_at_;
  std::optional<std::uint64_t> restore_;  ///< Newest good checkpoint, while that is certain.
  std::vector<std::uint64_t> unreadable_; ///< Checkpoints that a server could not read.
  checkpoint_schedule schedule_;
  /// The checkpoint that was begun after the last batch, or after stop; 0: none.
  std::uint64_t last_checkpoint_ = 0;
  std::uint32_t last_failures_ = 0;
  time_point last_retry_at_{0};

  view view_;
  std::deque<job_event> events_;
  std::uint64_t events_total_ = 0;
};

} // namespace troupe
