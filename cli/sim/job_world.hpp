// Simulates a whole job in one thread and virtual time, with the real deciders of launcher,
// coordinator, servers and workers (session, coordinator, replica_host, router, request_window,
// reducer, step_planner). The values are one number. Processes, disks, clocks and the network fail
// as a seed says.
#pragma once

#include "cli/sim/job_options.hpp"
#include "cli/sim/job_values.hpp"
#include "cli/sim/world.hpp"

#include "actors/protocol/server/replica_host.hpp"
#include "actors/protocol/session/session.hpp"
#include "actors/protocol/worker/step_planner.hpp"
#include "actors/protocol/worker/reducer.hpp"
#include "actors/protocol/worker/stage_guard.hpp"
#include "actors/protocol/worker/request_window.hpp"
#include "actors/protocol/worker/router.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace troupe::sim {

/// Counts the events of a history, so that a run can show that it tested something.
struct job_tally {
  std::uint64_t events = 0, applied = 0, repeated = 0, refused = 0, answered = 0,
                answered_anywhere = 0;
  std::uint64_t worker_kills = 0, server_kills = 0, coordinator_kills = 0, pauses = 0, cuts = 0;
  std::uint64_t unnoticed_restarts = 0;
  std::uint64_t restarts = 0, failed_starts = 0, hangs = 0, hung_kills = 0, evaluations = 0;
  std::uint64_t crashes = 0, crashing = 0, stays_out = 0, gives_up = 0;
  std::uint64_t links_broken = 0, slow_saves = 0, resumes = 0;
  std::uint64_t copies = 0, failovers = 0, moves = 0, additions = 0, drains = 0;
  std::uint64_t commits = 0, parts_failed = 0, logs_broken = 0, completed = 0, restores = 0,
                recoveries = 0, unreadable = 0, starts_over = 0;
  std::uint64_t backups = 0, evictions = 0, shared = 0;
  std::uint64_t reduced = 0, sums = 0, left_out = 0, sum_not_applicable = 0, pulls_shared = 0,
                gathered = 0;
  std::uint64_t staged = 0, stage_faults = 0;
  std::uint64_t lines = 0, part_kills = 0, partial_pushes = 0, attempts_again = 0,
                dropped_by_lines = 0;
  std::uint64_t stops = 0; ///< Jobs that wrote their last checkpoint at the user's request.
};

/// One history: faults for a time, then quiet, in which the job has to end.
class job_world : public world {
public:
  using tally = job_tally;
  static constexpr std::string_view name = "job";
  /// The modes of the tables.
  static constexpr auto kinds = [] {
    std::array<std::string_view, simulated_modes.size()> names;
    std::ranges::transform(simulated_modes, names.begin(), &mode_traits::name);
    return names;
  }();
  static const std::vector<minimum<tally>> minima;

  explicit job_world(std::uint64_t seed, bool no_faults = false, trace_function trace = {});
  ~job_world();

  /// Runs the history. Throws violation.
  void run();
  const tally& counted() const { return tally_; }
  std::size_t kind() const {
    const auto found = std::ranges::find(simulated_modes, mode().mode, &mode_traits::mode);
    return static_cast<std::size_t>(found - simulated_modes.begin());
  }

private:
  struct process;
  struct hosted;
  struct server;
  struct worker;
  struct worker_process;
  struct later_part;
  struct controller;
  struct launcher;
  struct kept_base;
  struct kept_chain;
  struct state_copy;
  struct part_in_flight;
  struct sent_part;
  struct command;
  using replica_what = std::variant<entry_message, committed_message, joined_message, copy_request,
                                    std::shared_ptr<const state_copy>>;
  using outcome = std::variant<reply, failure>;

  const mode_traits& mode() const { return job().tables.front().sync.traits(); }
  const job_spec& job() const { return options_.job; }
  bool is_durable() const { return job().durability == durability_mode::log; }
  incarnation_id next_incarnation() { return {++incarnations_}; }

  // -- processes --
  /// Returns null if the process has ended.
  process* find(const member_id& who);
  server* find_server(const member_id& who);
  worker* find_worker(const member_id& who);
  bool lives(const member_id& who) { return find(who) != nullptr; }
  /// Calls `what` when the process is not paused; never if it has ended by then.
  void when_awake(const member_id& who, time_point when, std::function<void()> what);
  void every(const member_id& who, milliseconds interval, std::function<void()> what);
  time_point local(const process& of) const;
  /// Calls `what` for the server and its chain when the server is not paused.
  void later(const server& by, const hosted& at, time_point when,
             std::function<void(server&, hosted&)> what);
  /// Returns the indices of all workers of the worker's process, alive or not.
  std::vector<std::uint32_t> group_of(std::uint32_t index) const;
  worker_process& process_of(const worker& one);
  worker_process* find_worker_process(const member_id& who);
  /// Returns the name of the member's process.
  process_name home_of(const member_id& who) const;
  /// Returns the processes of servers and workers with which the job begins.
  std::vector<process_name> first_processes() const;
  bool is_here(process_name who) const { return here_.contains(who); }
  bool runs(process_name who) const;
  incarnation_id start(process_name who);
  incarnation_id start_server(std::uint32_t index);
  incarnation_id start_workers(std::uint32_t first);
  void start_worker(const worker_process& home, std::uint32_t index);
  void start_elsewhere(process_name who, time_point when);
  milliseconds absence_of(role of);
  void disconnect(const std::vector<member_id>& lost);
  void kill(const member_id& who);
  void end(member_id who, const std::optional<failure>& why);
  void gone(process_name who, const std::optional<failure>& why);
  std::vector<member_id> take_down(process_name who);

  // -- job_coordinator.cpp: the coordinator, its store and its checkpoints --
  void start_coordinator(bool resume);
  void kill_coordinator();
  void end_coordinator();
  void send_up(process& by, decltype(status_message::body) body);
  void hear(const status_message& what);
  void coordinate(const std::function<void(coordinator_effects&)>& what);
  void carry_out_waiting();
  void run(send_effect& effect);
  void run(find_checkpoint_effect& effect);
  void run(commit_checkpoint_effect& effect);
  void run(persist_effect& effect);
  void run(event_effect& effect);
  void persist(const storage::coordinator_state& state);
  storage::checkpoint_search_result find_checkpoint(const std::vector<std::uint64_t>& passed_over);
  void commit(std::uint64_t checkpoint);
  std::size_t good_checkpoints() const;

  // -- job_launcher.cpp: the launcher, which is a shell of its session, and commands --
  void start_launcher();
  session_options session_options_of() const;
  void act(launcher& by);
  void follow(launcher& by);
  void take(launcher& by, const session_event& what);
  void expect(launcher& by, const session_event& what);
  void start_here(launcher& by, process_name who);
  void hear_end(process_name who, process_end how, const std::vector<member_id>& lost);
  void hear_work(const member_id& who);
  void run(launcher& by, const start_effect& effect);
  void run(launcher& by, const kill_effect& effect);
  void run(launcher& by, const evaluate_effect& effect);
  void run(launcher& by, const trained_effect& effect);
  void run(launcher& by, const say_effect& effect);
  void run(launcher&, const lost_effect&) {}
  void run(launcher&, const recovered_effect&) {}
  void run(launcher& by, const results_effect& effect);
  void run(launcher& by, const end_effect& effect);
  void reconcile_as_observer(const desired_state& what);
  void observe_for_commands();
  void begin_command();

  // -- job_servers.cpp: server_actor, and the loads and saves of a replica_host --
  void act(server& by);
  void reconcile(server& by, const desired_state& what);
  void send_report(server& by);
  replica_host_options host_options_of(const server& by) const;
  void run(server& by, hosted& at, begin_generation_effect& effect, host_effects& more);
  void run(server& by, hosted& at, load_effect& effect, host_effects& more);
  void run(server& by, hosted& at, recall_effect& effect, host_effects& more);
  void run(server& by, hosted& at, replay_effect& effect, host_effects& more);
  void run(server& by, hosted& at, settle_loaded_effect& effect, host_effects& more);
  void run(server& by, hosted& at, save_effect& effect, host_effects& more);
  void run(server& by, hosted& at, write_effect& effect, host_effects& more);
  void run(server&, hosted&, keep_past_effect&, host_effects&) {} ///< Copies come whole.
  void run(server& by, hosted&, report_effect&, host_effects&) { send_report(by); }
  void run(server&, hosted&, workers_effect&, host_effects&) {}
  void run(server&, hosted&, note_effect&, host_effects&) {}
  void fill(server& by, hosted& at, const load_effect& effect);
  void loaded(server& by, hosted& at, std::uint64_t load, value_image image);
  void begin_base(server& by, hosted& at, save_effect& effect);
  void end_base(server& by, hosted& at, kept_base base);
  void saved(server& by, hosted& at, const save_id& id, const value_image& image, bool fails);
  bool may_fail(const std::string& why);
  kept_chain& disk_of(const server& by, const hosted& at);
  time_point disk_time(server& by);
  bool is_unreadable(std::uint64_t checkpoint);

  // -- job_replicas.cpp: requests, steps, and other replicas --
  void ask(server& by, const member_id& from, const part_in_flight& what);
  void answer(server& by, hosted& at, request_token token, outcome what);
  void send_answer(const server& by, const member_id& to, const part_in_flight& asked,
                   generation_id generation, outcome what);
  void decide(server& by, hosted& at, const std::function<void(host_effects&)>& what);
  void run(server& by, hosted& at, acknowledge_effect& effect, host_effects& more);
  void run(server& by, hosted& at, reply_effect& effect, host_effects& more);
  void run(server& by, hosted& at, refuse_effect& effect, host_effects& more);
  void run(server& by, hosted& at, step_effect& effect, host_effects& more);
  void run(server& by, hosted& at, apply_gathered_effect& effect, host_effects& more);
  void run(server& by, hosted& at, replica_send_effect& effect, host_effects& more);
  void run(server& by, hosted& at, ask_copy_effect& effect, host_effects& more);
  void run(server& by, hosted& at, send_copy_effect& effect, host_effects& more);
  void run(server&, hosted& at, end_copy_effect&, host_effects&);
  void send_to_peer(const member_id& to, shard_id shard, const member_id& from, replica_what what);
  void receive(server& by, hosted& at, const member_id& from, const replica_what& what);
  void receive(server& by, hosted& at, const state_copy& what);

  // -- job_workers.cpp: worker_actor, router_actor and links --
  void act(worker& by);
  void tick(worker_process& by);
  void reconcile(worker& by, const desired_state& what);
  void advance(worker& by);
  void ask(worker& by, std::optional<training_step> done, std::optional<training_step> next);
  void computed(worker& by, const training_step& what);
  static step_header header_of(const worker& by, const training_step& step);
  void note_push(worker& by, const step_header& step, table_id table);
  static void forget_pushes(worker& by, batch_id batch);
  void answered(worker& by, request_token token);
  void failed(worker& by, request_token token, const failure& why);
  void carry_out(worker_process& by, router_effects& effects);
  void run(worker_process& by, send_part_effect& effect);
  void run(worker_process& by, answered_effect& effect);
  void run(worker_process& by, failed_effect& effect);
  void settle(worker_process& by, const part_in_flight& asked, outcome what);
  void fail_late_parts(worker_process& by);
  /// Gives an event to the window of a link, and carries its effects out.
  void decide(worker_process& by, std::uint32_t index,
              const std::function<void(request_window&, window_effects&)>& what);
  void run(worker_process& by, std::uint32_t index, connect_effect& effect);
  void run(worker_process& by, std::uint32_t index, send_requests_effect& effect);
  void run(worker_process& by, std::uint32_t index, flush_soon_effect& effect);
  void run(worker_process& by, std::uint32_t index, end_request_effect& effect);
  void arrive(const member_id& from, std::uint32_t index, const part_in_flight& what);
  void send_report(worker& by);
  void over_link(const member_id& process, std::uint32_t index, bool to_server,
                 std::function<void()> arrive);
  void break_link(worker_process& by, std::uint32_t index);

  // -- job_lines.cpp: lines of parts, whose first part is the worker --
  bool has_lines() const { return options_.line_parts > 1; }
  later_part* find_part(const member_id& who);
  /// Returns the later parts of the worker's line that are alive.
  std::vector<later_part*> parts_of(const worker& by);
  void start_part(std::uint32_t worker, table_id table);
  void kill_part();
  void begin_line(worker& by, const training_step& what, time_point time);
  void begin_attempt(worker& by);
  void go_on(worker& by);
  void drop_steps(worker& by);
  void act(later_part& by);
  void answered(later_part& by, request_token token);
  void failed(later_part& by, request_token token, const failure& why);

  // -- job_stages.cpp: a stage before the reducer --
  void ask(worker_process& by, const member_id& responder, request_token token, request what);
  void guard(worker_process& by, const std::function<void(guard_effects&)>& what);
  void reached(worker_process& by, const answered_effect& effect);
  void reached(worker_process& by, const failed_effect& effect);

  // -- job_reducers.cpp: reduce_stage, and the end of processes with several workers --
  void pass_on(worker_process& by, request_token token, request what);
  void reduce(worker_process& by, const std::function<void(reducer_effects&)>& what);
  void forward(worker_process& by, sum_effect& effect);
  void answered(worker_process& by, request_token token);
  void failed(worker_process& by, request_token token, const failure& why);
  worker* take_responder(worker_process& by, request_token token);
  void end_worker(const member_id& who, const std::optional<failure>& why);
  void end_worker_process(const member_id& who, const std::optional<failure>& why);
  std::vector<member_id> take_down_workers(std::uint32_t first);
  /// Returns the process and all that pause with it.
  std::vector<process*> all_of_process(process& one);

  // -- job_desired.cpp: checks of desired states and records --
  void check_desired(const desired_state& what);
  void check_desired(const desired_server& what);
  void check_leases(const member_id& to, const desired_worker& what);
  void check_open_batches();
  void check_evictions(const job_status& what);
  void check_eviction_told();
  void check_records(const storage::coordinator_state& before,
                     const storage::coordinator_state& after);
  void check_base_checkpoint(const chain_metadata& after) const;
  bool was_missed(const member_id& who, time_point since) const;

  /// A generation of a chain.
  struct history {
    generation_id job_generation;
    time_point begun{0};
    bool recovered = false; ///< Its initial member recovered from its log.
    value_image first_values;
    std::uint64_t first = 0;            ///< Version of `first_values`.
    std::vector<std::uint64_t> digests; ///< Digest at each version, from `first` on.
  };

  // -- job_checks.cpp: checks of values, reads and checkpoints, and at the end --
  void check_step(const hosted& at, const apply_effect& effect);
  void check_applied(const hosted& at, std::uint64_t version);
  void check_beginning(const server& by, const hosted& at, const value_image& image);
  bool may_be_lost(shard_id shard, const chain_config& lost, const history& past,
                   const history& begun) const;
  void check_kept(shard_id shard, const chain_config& lost, generation_id next);
  void check_answer(server& by, const hosted& at, const part_in_flight& asked,
                    std::uint64_t version);
  void check_staleness(server& by, const hosted& at, std::uint64_t reader_clock);
  static bool has_open_work(const worker& one);
  bool is_at_work(const worker& one) const;
  static std::optional<std::uint64_t> bound_from(const hosted& at, const worker& one);
  void check_cut(const hosted& at) const;
  void check_freed(const server& by, const hosted& at) const;
  void check_parts(const storage::manifest& what);
  void check_finished();
  void check_stopped();
  void check_end();

  // -- job_launcher_checks.cpp --
  void check_start(launcher& by, process_name who) const;
  void check_kill(const launcher& by, process_name who) const;
  void check_report(const launcher& by) const;
  void check_restarts(launcher& by) const;
  void check_limits(launcher& by);
  void check_shown(const launcher& by) const;
  void check_dismissal() const;
  void check_rest(const launcher& by) const;
  void check_status(const launcher& by, const end_effect& what) const;
  std::uint64_t clocks_of(const batch_set& applied) const;

  // -- job_crashes.cpp: a process that ends again and again --
  void draw_crashes();
  bool is_crashing(process_name who) const { return crashes_ && crashes_->who == who; }
  void plan_crash(bool has_worked);
  void crash(const member_id& who);
  process_end draw_end();

  // -- job_description.cpp --
  std::string describe() const;
  std::string describe(const server& by, const hosted& at) const;
  std::string describe(const worker& one) const;

  // -- faults --
  void inject_faults();
  void pause_someone();
  void cut_somewhere();
  void hang_someone();
  void everything_dies();
  void heal();
  bool has_ended() const;

  job_options options_;
  std::uint64_t fingerprint_ = 0;
  std::uint64_t incarnations_ = 100;
  double worker_kill_rate_, server_kill_rate_, coordinator_kill_rate_, pause_rate_, cut_rate_,
    resize_rate_, part_kill_rate_ = 0, slow_disk_, part_failure_, unreadable_, slow_store_,
                  link_breaks_, wiped_;
  double connections_seen_; ///< Chance that the coordinator notices the end of one.
  double start_failure_;
  double full_log_; ///< Chance that a server refuses a push, as it holds too many entries.
  std::optional<time_point> hang_at_; ///< When a process begins to hang; nullopt: none does.
  time_point faults_end_{0};
  bool dies_together_ = false;
  /// The process that ends again and again, and the limits of the restarts of its node.
  struct crash_plan {
    process_name who;
    supervision limits;
    std::uint64_t left = 0;          ///< Ends to come.
    bool is_dismissed = false;       ///< It says each time that it was told to end.
    double before_work = 0;          ///< Share of lives that end soon after their start.
    std::uint64_t after_work_ms = 0; ///< The longest time from its first work to its end.
  };
  std::optional<crash_plan> crashes_;

  std::map<std::uint32_t, std::unique_ptr<server>> servers_;
  std::map<std::uint32_t, std::unique_ptr<worker>> workers_;
  std::map<std::uint32_t, std::unique_ptr<worker_process>> worker_processes_;
  std::map<std::uint32_t, std::unique_ptr<later_part>> parts_; ///< By the index of the member.
  std::unique_ptr<controller> coordinator_;
  bool resume_next_ = false;
  std::map<std::pair<std::uint32_t, shard_id>, kept_chain> disks_;
  /// Chains that a server lost with its disk, and of which it has since kept only a generation's
  /// first base.
  std::set<std::pair<std::uint32_t, shard_id>> wiped_disks_;

  // -- state that outlives a coordinator --
  storage::coordinator_state persisted_;
  struct stored_checkpoint {
    std::map<shard_id, value_image> parts;
    bool committed = false;
    std::uint64_t clock = 0;
  };
  std::map<std::uint64_t, stored_checkpoint> checkpoints_;
  std::set<std::uint64_t> rotten_; ///< No server can read these checkpoints.

  // -- the launcher, and other hosts --
  std::unique_ptr<launcher> launcher_;
  /// The processes of the launcher's host. The others are of hosts that see no deaths.
  std::set<process_name> here_;
  std::optional<time_point> stop_at_; ///< Time at which the user asks to stop; nullopt: never.
  std::uint64_t before_stop_ = 0;     ///< The newest checkpoint, whole or not, at that time.
  std::map<member_id, command> commands_;

  // -- the oracle --
  std::map<std::uint64_t, std::uint64_t> term_of_; ///< Incarnation of the coordinator in each term.
  std::map<std::uint64_t, std::pair<lease, member_id>> leases_seen_;
  std::map<member_id, std::vector<lease>> leases_now_;
  /// Batches of each lease that this coordinator was told are done. The worker may have forgotten
  /// them: if a late desired state of an earlier coordinator came between, the lease is a new one
  /// to it.
  std::map<std::pair<member_id, std::uint64_t>, std::set<batch_id>> told_done_;
  bool leases_changed_ = false;
  struct attention {
    time_point heard{0};        ///< When a coordinator last heard from it.
    time_point silent_max{0};   ///< Longest silence.
    time_point missed_until{0}; ///< End of the last silence that others may have noticed.
  };
  std::map<member_id, attention> attention_; ///< Keys have no incarnation: one for all of an index.
  std::set<std::uint64_t> refused_; ///< Checkpoints reported unreadable to this coordinator.
  std::optional<time_point> evicted_at_;
  std::map<std::pair<shard_id, generation_id>, history> histories_;
  std::map<shard_id, batch_set> acknowledged_; ///< In the chain's active generation.
  std::map<shard_id, std::pair<generation_id, std::uint64_t>> told_; ///< The newest version.
  job_phase last_phase_ = job_phase::gathering; ///< The coordinator's, at its last tick.
  bool any_failed_ = false;                     ///< A coordinator said that the job failed.
  bool present_failed_ = false; ///< The present one did. A successor may go on with the job.
  tally tally_;
};

} // namespace troupe::sim
