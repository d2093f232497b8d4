// What the coordinator decides: who is a member, which servers hold which chain, who works on what,
// when a checkpoint is cut, and when the job is over. A plain state machine. Members send their
// whole state (report), and get theirs as it should be (orders); so a lost message, a repeated one
// and a restart of the coordinator are all the same case: the next report.
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
  /// A lease should take a worker no longer than this, so that a slow one holds little when the
  /// work runs out. Shorter: more messages.
  std::chrono::milliseconds lease_time{100};
  /// A member that has not reported for so long is dead. Must exceed many report intervals
  /// (100 ms). Servers that alone hold something are waited for longer, as there may be nothing
  /// else to go on from.
  std::chrono::milliseconds liveness_timeout{5000};
  /// A server that has not reported for so long is replaced in its chains, where others have what
  /// it has. Must exceed chain_options::lease_time by more than clocks differ.
  std::chrono::milliseconds silence_timeout{1300};
  /// A chain that was lost waits so long for its servers to start again before others take it.
  std::chrono::milliseconds return_timeout{10'000};
  /// Work begins when all workers of the job have come, or so long after the first one.
  std::chrono::milliseconds gather_timeout{15'000};
  /// After a restart: time for members to report before absence means anything.
  std::chrono::milliseconds recovery_timeout{3000};
  /// A finished batch whose mark is missing for so long is given out again.
  std::chrono::milliseconds audit_grace{1000};
  /// Time between the end of one checkpoint and the cut of the next; 0: by clocks or never.
  std::chrono::milliseconds checkpoint_interval{2000};
  /// Batches per worker slot between checkpoints; 0: by time.
  std::uint64_t checkpoint_clocks = 0;
  /// Nullopt: nobody is compared.
  std::optional<straggler_options> stragglers;
  bool checkpoints = true; ///< False: only members' memory (threads without a directory, hogwild).
  bool resume = false;     ///< Start from the newest good checkpoint rather than from nothing.
  std::uint32_t index = 0; ///< Which of the coordinators this is.
  std::uint64_t directory_mark = 0; ///< Of the checkpoint directory, for hosts that join; 0: none.
};

// -- effects --
struct send_effect {
  troupe::desired_state desired_state;
};
/// Find the newest good checkpoint, then call checkpoint_found() or search_failed().
struct find_checkpoint_effect {
  std::vector<std::uint64_t> unreadable; ///< Pass these over: servers could not read them.
};
/// Commit this one (and apply retention), then call checkpoint_committed().
struct commit_checkpoint_effect {
  storage::manifest manifest;
};
/// Store before the effects behind it are carried out.
struct persist_effect {
  storage::coordinator_state state;
};
/// One line for the log and the display.
struct event_effect {
  std::string text;
};

using coordinator_effect = std::variant<send_effect, find_checkpoint_effect,
                                        commit_checkpoint_effect, persist_effect, event_effect>;
using coordinator_effects = std::vector<coordinator_effect>;

/// Invariants:
/// (1) at most one incarnation of each (role, index) is a member; a dead one never comes back.
/// (2) a worker gets leases only after the head of every chain reported its incarnation as known.
/// (3) orders of one term carry growing sequences; what they say is a function of the state.
/// (4) jobs with a bsp table: when a chain is lost, the generation grows and all chains begin again
///     with the same checkpoint; other jobs: only the lost chain does.
/// (5) the job is finished only when every batch is in the marks of every chain, and (with
///     checkpoints) the last checkpoint was committed after that.
/// (6) the job is ended only by the main launcher (observer 0); others report deaths.
/// (7) who is out, as the detector of stragglers says, has no incarnation in the servers' lists
/// and no
///     leases. After a restart the detector begins anew, and nobody is.
/// (8) after a restart nothing is ordered before everyone of the job reported or recovery_timeout
///     passed, so that what members hold is known before anything new is decided.
///
///     gathering --all serve, workers came--> training --complete--> finishing --saved--> finished
///                                               ^-----------a chain lost batches---------------|
///     any --failed--> stopped       finished --observer 0 is done--> stopped
///     training, finishing --stop--> finishing --committed, or 10 s--> stopped
class coordinator {
public:
  /// `stored`: what the last coordinator of this directory persisted (term 0: nothing). The new one
  /// serves under stored.term + 1, and persists that first. `last_checkpoint`: largest number used.
  coordinator(job_spec job, coordinator_options options, storage::coordinator_state stored,
              std::uint64_t last_checkpoint, time_point now, coordinator_effects& effects);

  void receive(const status_message& what, time_point now, coordinator_effects& effects);
  /// Deadlines; call every 20 ms or so.
  void tick(time_point now, coordinator_effects& effects);
  /// The connection of a member ended: a hint, not a proof.
  void disconnected(const member_id& member, time_point now, coordinator_effects& effects);
  void checkpoint_found(const storage::found& what, time_point now, coordinator_effects& effects);
  /// Errors that may pass (peer_lost, timed_out, io_failed) lead to another search after 1 s,
  /// others fail the job. It never starts over because of one.
  void search_failed(const failure& why, time_point now, coordinator_effects& effects);
  void checkpoint_committed(std::uint64_t checkpoint, const result<void>& outcome, time_point now,
                            coordinator_effects& effects);
  /// A committed checkpoint was read again, and is damaged or cannot be read.
  void scrub_failed(const failure& why, coordinator_effects& effects);
  /// An effect could not be carried out, and the job cannot go on without: fails it.
  void give_up(const std::string& why, time_point now, coordinator_effects& effects);

  job_phase phase() const { return phase_; }
  /// Orders made so far, sent or not.
  std::uint64_t desired_made() const { return desired_made_; }

private:
  /// How far a worker is on its way into the servers' clock vectors, and out again:
  ///
  ///     out --work to do--> candidate --promised by all servers--> admitted --no work--> leaving
  ///      ^-----------------------listed by no server any more------------------------------|
  enum class admission : std::uint8_t { out, candidate, admitted, leaving };

  struct worker_state {
    worker_status report;
    admission stage = admission::out;
    std::uint64_t start_clock = 0;
    bool adopted = false; ///< A coordinator before this one had admitted it.
    /// Measured by this clock, over the stretch that ended last; none before the first.
    std::optional<double> batches_per_second;
    std::uint64_t pace_base = 0; ///< Acknowledged pushes when the present stretch began ...
    time_point pace_since{0};    ///< ... and when that was.

    straggler_measure measure = straggler_measure::full; ///< As was carried out.
    worker_progress step;    ///< At its newest report of another step ...
    time_point step_at{0};   ///< ... which came then.
    time_point step_time{0}; ///< Time of a step before that, without waiting.
  };

  /// The present incarnation of a server.
  struct server_state {
    member_id id;
    server_status report;      ///< Its newest one.
    time_point trusted_at{0};  ///< When one came that counts as a sign of life ...
    std::uint64_t echo_ns = 0; ///< ... and the stamp of that.
  };

  /// What is known of a chain beside its record.
  struct chain_state {
    std::optional<member_id> head; ///< Of the active configuration, while it is alive.
    replica_status report;         ///< The head's newest one.
    bool serving = false;          ///< The head has what it is to have.
    bool started = false;          ///< It has a history: begin with a checkpoint.
    bool to_begin = false;         ///< Another generation of it has to begin: this one is over.
    bool restored = false;         ///< Its generation began with a checkpoint, and was not counted.
    batch_set lost_marks;          ///< Of the generation before ...
    std::uint32_t lost_by = 0;     ///< ... and the server that led it.
  };

  /// What orders say to more than one member. Where it changed, all orders are made anew; else only
  /// those of members whose leases changed.
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
  void notify(const std::string& event, effects_ref effects);
  void notify_once(const member_id& about, const std::string& event, effects_ref effects);
  void persist(effects_ref effects);
  void notice_pause(time_point now);

  // -- coordinator_servers.cpp: who is there, generations of chains, the view --
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

  // -- coordinator_checkpoints.cpp: marks and checkpoints --
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
  /// Those that may work now, in ascending order.
  struct worker_pool {
    std::vector<worker_id> regular; ///< Get work of their own ...
    std::vector<worker_id> backup;  ///< ... and copies of it: nobody waits for these.
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

  // -- coordinator_stragglers.cpp: who is slow, and what is done about it --
  void detect_stragglers(time_point now, effects_ref effects);
  void carry_out(const straggler_event& event, time_point now, effects_ref effects);
  void evict(std::uint32_t index, time_point now, effects_ref effects);
  void hear_progress(worker_state& worker, worker_id id, time_point now);
  time_point step_time(worker_id worker, time_point now) const;
  straggler_measure measure_of(worker_id worker) const;
  bool has_work_for(worker_id worker, bool any) const;
  void copy_work(time_point now);
  void copy_slowest(worker_id backup, std::set<worker_id>& copied, time_point now);

  // -- coordinator_orders.cpp: what members are told --
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
  bool waiting_told_ = false;               ///< Who is missing, while gathering.
  bool stop_wanted_ = false;                ///< The user asked to end.
  std::optional<time_point> stop_deadline_; ///< Set once that is being done.
  bool done_ = false;                       ///< The main observer needs nothing more.
  /// Last report of the main observer, or begin of `finished`.
  time_point observed_at_{0};

  membership members_;
  std::map<std::uint32_t, worker_state> workers_;
  std::map<std::uint32_t, server_state> servers_; ///< Those present.
  std::map<std::uint32_t, time_point> gone_;      ///< Since when others are missing.
  std::set<server_id> newcomers_; ///< Added ones that do not have their share of the chains yet.
  std::map<std::uint32_t, std::uint64_t> rolled_back_; ///< Updates that were lost with servers.
  placement placement_;
  std::vector<chain_state> chains_;
  std::set<member_id> unknown_members_; ///< Of another job; each is told of once.
  std::set<member_id> notified_;        ///< Other things worth one event a member.
  std::set<std::pair<role, std::uint32_t>> seen_;

  std::optional<straggler_detector> detector_;
  ledger ledger_;
  std::uint64_t next_lease_ = 1;
  std::uint64_t placements_ = 0; ///< Changes of the chains' records.
  std::uint64_t next_desired_ = 1;
  std::uint64_t roster_ = 0; ///< Changes of what servers are told of workers.
  std::optional<common_desired> told_;
  std::uint64_t desired_made_ = 0;
  bool frozen_ = false; ///< bsp: history was rolled back, not all chains serve it yet.
  std::optional<std::uint32_t> rollback_cause_; ///< The chain whose loss rolled all back ...
  batch_set acknowledged_;                      ///< ... and what had been acknowledged before.
  bool marks_changed_ = false;
  bool audit_needed_ = false; ///< Marks went back: finished batches cannot be trusted.
  time_point audited_at_{0};

  bool finding_ = false;
  bool search_failing_ = false; ///< Which was told.
  std::optional<time_point> search_again_at_;
  std::optional<std::uint64_t> restore_; ///< Newest good checkpoint, while that is sure to be true.
  std::vector<std::uint64_t> unreadable_; ///< Checkpoints that a server could not read.
  checkpoint_schedule schedule_;
  /// The one begun after the last batch, or after stop; 0: none.
  std::uint64_t last_checkpoint_ = 0;
  std::uint32_t last_failures_ = 0;
  time_point last_retry_at_{0};

  view view_;
  std::deque<std::string> events_;
  std::uint64_t events_total_ = 0;
};

} // namespace troupe
