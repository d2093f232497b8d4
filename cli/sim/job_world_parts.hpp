// Defines the state that parts of the simulated job share: processes, their disks, their messages.
#pragma once

#include "cli/sim/job_world.hpp"
#include "cli/sim/restart_oracle.hpp"

#include <signal.h>

#include <algorithm>
#include <array>

namespace troupe::sim {

inline constexpr std::uint32_t servers_simulated_max = 8;
inline constexpr std::uint32_t workers_simulated_max = 10;
inline constexpr std::uint32_t coordinator_place = servers_simulated_max + workers_simulated_max;
inline constexpr std::uint32_t launcher_place = coordinator_place + 1;
inline constexpr milliseconds launcher_interval = 50ms;
inline constexpr milliseconds report_interval = 100ms;
inline constexpr time_point quiet_time = 40s; ///< Within this time the job has to end.
/// A member that was heard within this time is not silent by any clock.
inline constexpr time_point surely_heard = 1200ms;

/// Returns the place: servers, then workers, then the coordinator, then the launcher's host.
inline std::uint32_t place_of(const member_id& who) {
  struct places {
    std::uint32_t first;
    std::uint32_t each; ///< Members of one place; 0: all of the role.
  };
  // The later parts of a line are at the place of their worker.
  constexpr std::array places_of_roles{places{coordinator_place, 0}, places{0, 1},
                                       places{servers_simulated_max, 1}, places{launcher_place, 0},
                                       places{servers_simulated_max, line_parts_max}};
  static_assert(places_of_roles.size() == role_rows.size());
  const auto& mine = places_of_roles[static_cast<std::size_t>(who.role)];
  return mine.first + (mine.each > 0 ? who.index / mine.each : 0);
}

/// Rate at which log writes fail, relative to parts of checkpoints.
inline constexpr double log_share = 0.03;
inline constexpr std::string_view bad_disk_words = "its disk fails";
inline constexpr std::string_view broken_words = "its log cannot be written";
/// After this time a server frees a chain that it could not go on with.
inline constexpr milliseconds unnamed_time = 1000ms;

inline const process_end killed{.how = process_end::kind::signalled, .number = SIGKILL};

inline bool is_in(const std::vector<member_id>& members, const member_id& who) {
  return std::ranges::find(members, who) != members.end();
}
inline bool takes_part(const chain_config& config, const member_id& who) {
  return config.joiner == who || is_in(config.members, who);
}
inline const chain_config& newest_of(const chain_metadata& record) {
  return record.proposed ? *record.proposed : record.active;
}
/// Returns the name with the incarnation.
inline std::string full_name(const member_id& who) {
  return name_of(who) + "." + std::to_string(who.incarnation.value);
}

struct job_world::process {
  member_id id;
  double rate = 1.0;
  time_point paused_until{0};
  std::uint64_t sequence = 0; ///< Number of the last report.
  /// Term and sequence of the last desired state.
  std::pair<std::uint64_t, std::uint64_t> last_desired{0, 0};
  /// The process was paused or cut off until then, and not heard since: others may have given it
  /// up.
  std::optional<time_point> disturbed_until;
  bool hangs = false; ///< It is paused until it is killed.

  /// Returns true if the desired state is newer than all before.
  bool takes(const desired_state& what) {
    const std::pair number{what.term, what.sequence};
    const bool is_new = number > last_desired;
    last_desired = std::max(last_desired, number);
    return is_new;
  }
};

// -- servers ------------------------------------------------------------------------------------

/// A request, or a part of one, on its way to a chain.
struct job_world::part_in_flight {
  std::uint64_t number = 0; ///< Unique to a client; a part may be on its way twice.
  part_id part;
  std::uint64_t attempt = 0;
  std::shared_ptr<const request> what;
  /// Newest generation and version that heads of the chain had told anyone when this was sent.
  std::pair<generation_id, std::uint64_t> told;
};

/// The whole state of a replica, for a joiner.
struct job_world::state_copy {
  config_id config;
  std::uint64_t index = 0;
  std::uint64_t clock_max = 0;
  value_image image;
};

struct job_world::kept_base {
  storage::base_id id;
  value_image image;
};

/// A server's disk for one chain: bases and logs, as in storage/local_state.hpp.
struct job_world::kept_chain {
  std::uint64_t newest = 0;                 ///< Number of the newest base that was begun.
  std::map<std::uint64_t, kept_base> bases; ///< The bases that are whole.
  /// Entries under their index, of the log that began with each base. nullopt: taken back.
  std::map<std::uint64_t, std::vector<std::pair<std::uint64_t, std::optional<log_entry>>>> logs;

  std::vector<log_entry> entries_from(std::uint64_t base) const;
};

/// A server's work for one chain; see replica_runner.
struct job_world::hosted {
  struct open_request {
    member_id from;
    part_in_flight asked;
  };
  struct gathered_push {
    std::shared_ptr<const push_request> push;
    std::uint64_t version = 0; ///< Version of the values with it.
  };
  hosted(shard_id shard, replica_host_options options) : host(shard, std::move(options)) {}

  replica_host host;
  std::set<member_id> unbound; ///< Workers it does not wait for, until they have left its list.
  value_image values, loaded;
  bool is_copy = false; ///< `loaded` is a copy.
  std::vector<gathered_push> gathered;
  std::map<request_token, open_request> requests;
  std::uint64_t next_token = 1;
  std::shared_ptr<const state_copy> sent;  ///< The last copy to a joiner.
  std::optional<time_point> unnamed_since; ///< When configurations ceased to name it.

  void list_workers(const desired_server& what);
  /// Returns whether the values have the mark, or a gathered push does.
  bool has(const job_spec& job, batch_id mark) const {
    return values.applied.contains(mark) || std::ranges::any_of(gathered, [&](const auto& x) {
             return std::ranges::count(marks_of(job, *x.push), mark) != 0;
           });
  }
};

struct job_world::server : process {
  std::map<shard_id, hosted> chains;
  std::vector<chain_status> told; ///< Statuses in the last report.
  time_point reported_at{0};
  time_point disk_free_at{0}; ///< Its writes take turns.
  bool has_worked = false;

  std::vector<chain_status> statuses() const;
};

// -- workers ------------------------------------------------------------------------------------

/// A part of a request that has not ended at its link.
struct job_world::sent_part {
  part_id part;
  std::uint64_t attempt = 0;
  std::uint32_t server = 0;
  std::uint64_t bytes = 0;
  time_point deadline{0};
  bool has_failed = false; ///< Its deadline has passed; a reply is still delivered.
};

/// Makes the stage of a process: in job_stages.cpp.
std::unique_ptr<stage_decider> make_stage(const job_options& how, std::uint64_t seed);

/// The state that workers of one process share.
struct job_world::worker_process : process {
  struct link {
    std::optional<request_window> window;
    std::uint64_t number = 0;
    bool is_dead = false; ///< The process has not noticed.
  };
  worker_process(const job_options& how, std::uint64_t seed)
      : values_of(how.job, router_options{.reads = how.reads}) {
    if (how.has_stage)
      stage.emplace("stage", make_stage(how, seed));
    if (how.workers_per_process > 1)
      reduces.emplace(how.job, reducer_options{how.reduce_wait});
  }

  incarnation_id first; ///< Of its first worker; the next worker has the next one.
  bool has_worked = false;
  std::optional<stage_guard> stage; ///< In front of the reducer.
  std::optional<time_point> stage_tick;
  std::optional<reducer> reduces; ///< In front of the router.
  router values_of;
  std::uint64_t next_token = 1, next_message = 1;
  std::map<request_token, member_id> responders;
  std::shared_ptr<push_quota> push_memory =
    std::make_shared<push_quota>(send_limits{}.memory_bytes);
  std::map<std::uint64_t, sent_part> sent;                       ///< By the number of the request.
  std::map<std::uint32_t, link> links;                           ///< Links to servers.
  std::map<std::pair<std::uint32_t, bool>, time_point> in_order; ///< Last one to or from a server.
};

/// A later part of a worker's line, in a process and with a router of its own.
struct job_world::later_part : worker_process {
  enum class phase { idle, to_pull, pulling, computing, to_push, pushing, done };

  explicit later_part(job_options how) : worker_process(without_stages(std::move(how)), 0) {}
  static job_options without_stages(job_options how) {
    how.has_stage = false;
    how.workers_per_process = 1;
    return how;
  }
  void drop_attempt() {
    does = phase::idle;
    open.reset();
  }

  member_id of; ///< The worker whose batch it computes.
  table_id table;
  step_header step; ///< Of its pull and of its push.
  std::uint64_t attempt = 0;
  phase does = phase::idle;
  std::optional<request_token> open; ///< The router may still have older requests.
};

struct job_world::worker : process {
  struct open_request {
    std::optional<training_step> done, next;
  };
  /// The batch that its line computes.
  struct line_step {
    training_step what;
    bool is_begun = false;    ///< There was an attempt.
    bool is_computed = false; ///< By the first part.
  };
  explicit worker(const job_options& how)
      : steps(how.job, step_planner_options{.ahead_max = how.pulls_ahead}) {}

  step_planner steps;
  int step_ms = 10;
  view known_view;
  std::map<request_token, open_request> requests;
  std::deque<training_step> to_compute;
  bool computes = false;
  std::optional<line_step> line;
  time_point idle_since{0};
  worker_counters counters;
  std::optional<failure> failed;
  time_point reported_at{0};
  bool admitted = false, was_given_up = false;
  /// Pushes of this generation of the job: clock, batch, table and time.
  struct pushed {
    std::uint64_t clock = 0;
    batch_id batch;
    table_id table;
    time_point when{0};
  };
  std::vector<pushed> made;
  generation_id made_in;
};

// -- the coordinator ----------------------------------------------------------------------------

struct job_world::controller : process {
  std::unique_ptr<coordinator> decider;
  std::deque<coordinator_effect> waiting;
  std::optional<storage::coordinator_state> saving; ///< Set while its store is writing.
  std::set<std::uint64_t> committing;               ///< Checkpoints.
  bool carries_out = false;
};

// -- the launcher ---------------------------------------------------------------------------------

struct job_world::launcher : process {
  /// News of its processes, and the members that are lost by it.
  struct heard_event {
    session_event what;
    std::vector<member_id> lost{};
  };

  launcher(session_options how, time_point now)
      : decides(std::move(how), now), heard_at(now),
        restarts(decides.options(), launcher_interval) {}

  /// Returns the newest news of the coordinator; null: the session has none.
  const job_update* update() const { return news ? &std::get<job_update>(*news) : nullptr; }
  job_phase phase() const { return news ? update()->desired_state.phase : job_phase::gathering; }
  /// Returns whether its news have no word against the process.
  bool wants(process_name who) const;
  /// Returns whether no end of the process counts, as the job has ended or the process leaves it.
  bool may_end(process_name who) const { return sent_away || is_over || !wants(who); }

  session decides;
  std::deque<heard_event> heard;     ///< Since its last round.
  std::optional<job_update> arrived; ///< Since its last round, the newest.
  std::optional<session_event> news; ///< The newest update that the session has.
  observer_status reported;
  time_point reported_at{0};
  std::set<process_name> ran; ///< Started at least once.
  std::optional<end_effect> end;

  // For the checks:
  time_point heard_at;                     ///< When the newest news came.
  std::optional<time_point> sent_away;     ///< When the news told it to end.
  std::map<member_id, time_point> listed;  ///< When older news named a member last.
  std::set<process_name> starting;         ///< Between an effect and its answer.
  std::map<process_name, time_point> down; ///< Ended processes, and since when.
  std::vector<death> deaths;               ///< All that the session has heard of.
  restart_oracle restarts;
  std::vector<job_event> said;                  ///< In this round.
  std::map<std::uint64_t, std::uint64_t> shown; ///< Events of the coordinator of each term.
  bool evaluates = false, trained = false, stop_asked = false, is_over = false;
  bool has_given_up = false;
  std::size_t left_out = 0;
};

/// A running `troupe add` or `troupe drain`.
struct job_world::command : process {
  resize wanted;
};

} // namespace troupe::sim
