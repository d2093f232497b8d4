// Collects the figures of a run: sums of all processes' counters, also of processes that died, and
// times of recovery. Feeds the progress display and the JSON report. It has no clock: callers pass
// times.
#pragma once

#include "actors/graph/report/progress.hpp"
#include "actors/protocol/process_name.hpp"
#include "actors/training/trainer.hpp"
#include "base/clock.hpp"
#include "serialization/job.hpp"
#include "serialization/messages.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

/// One death and its recovery.
struct recovery {
  process_name who;
  time_point killed_at{0};
  time_point detected_at{0};
  std::optional<time_point> recovered_at; ///< Nullopt: not (yet) recovered.
  std::uint64_t updates_rolled_back = 0;
};

struct loss_point {
  std::uint64_t batches = 0;
  time_point at{0};
  std::optional<double> training_loss; ///< Mean since the point before.
  std::optional<evaluation> test;
};

/// The result of an evaluation after whole passes.
struct evaluation_result {
  evaluation found;
  std::uint64_t epoch = 0;
  std::uint64_t epochs = 0; ///< Passes of the job.
};

/// Counters are cumulative per incarnation, and a server that loads partitions anew begins again
/// at zero; both are noticed and added up. Counts after the last report of a process are lost with
/// it.
///
/// All times are of one clock that only grows.
class run_statistics {
public:
  /// `nodes`: those of the graph, for the report.
  explicit run_statistics(const job_spec& job, troupe::node_roles nodes = {});

  /// Takes note that the job has no servers, for the report. `sync`: takes the place of its modes.
  /// `batches_before`: those in the values when this run began.
  void without_servers(std::string_view sync, std::uint64_t batches_before) {
    sync_without_servers_ = sync;
    batches_before_ = batches_before;
  }
  void job_started(time_point now);
  /// Replaces the job by that of the main host, before the first observe().
  void follow(const job_spec& job) { job_ = job; }
  void job_finished(time_point now);
  void observe(const job_status& what, time_point now);
  /// Counts a death; repeated calls for one incarnation count once. Without a call, observe()
  /// counts it when it sees a successor, and takes the time at which the process was first missing.
  /// `killed_at`: when it was killed, if that is known, else equal to `detected_at`.
  void process_died(const member_id& member, time_point killed_at, time_point detected_at);
  /// Takes note that a coordinator answers again after a death.
  void coordinator_back(time_point now);
  /// Adds an evaluation after `epoch` whole epochs.
  void evaluated(std::uint64_t epoch, evaluation found, time_point now);
  /// Sets the peak resident memory of a process that observe() does not see: coordinator, launcher.
  void resident_memory(const std::string& name, std::uint64_t bytes_max);

  /// Returns all deaths. A death of a worker or server is recovered when a newer incarnation is
  /// active and has made progress: a worker had a push acknowledged, a server's version moved on. A
  /// death of an actor is recovered when a newer incarnation has reported.
  /// If no work was left, the end of training with the incarnation active counts.
  const std::vector<recovery>& recoveries() const { return recoveries_; }

  progress_snapshot snapshot(time_point now) const;
  std::optional<evaluation_result> last_evaluation() const;

  /// Returns the counts of trainers, stages, keepers and actors, by name.
  std::map<std::string, std::uint64_t> counts() const;

  /// Returns the report; docs/reference/report.md has its keys.
  std::string to_json(const std::string& command) const;

private:
  /// Counters each of which may begin again at zero.
  template <class Counters>
  struct accumulated {
    Counters before; ///< Sums up to the last time that each began again.
    Counters last;
    void set(const Counters& value);
    std::uint64_t total(std::uint64_t Counters::*which) const {
      return before.*which + last.*which;
    }
  };
  /// All figures of one incarnation.
  struct incarnation {
    member_status status;
    accumulated<worker_counters> worker; ///< Of a worker, or a later part of a line.
    accumulated<server_counters> server;
    std::map<std::string, port_counters> ports; ///< Of a worker or an actor.
    std::vector<program_note> actor_notes;
    std::optional<std::pair<std::uint64_t, std::uint64_t>> first_active; ///< Version and applied.
    std::uint64_t activity() const;
    void set_ports(const std::vector<port_counters>& present);
  };
  struct process {
    incarnation_id present;
    incarnation_id last_seen;
    std::optional<time_point> missing_since;
    bool dead = false;
    bool has_left = false; ///< The job no longer has this server.
    std::uint32_t starts = 0;
    std::uint64_t rss_bytes_max = 0;
  };
  struct rate_sample {
    time_point at{0};
    std::uint64_t samples = 0;
    std::uint64_t bytes = 0;
    std::map<process_name, std::uint64_t> process_bytes;
  };

  /// Counts deaths on other hosts, which are not reported: a successor shows its predecessor's.
  void note_succession(const member_id& member, time_point now);
  void note_departures(const std::vector<server_id>& servers, time_point now);
  void account(const member_status& status);
  void note_recovery(const member_status& status, job_phase phase, time_point now);
  void note_loss(time_point now);
  void note_pause(job_phase phase, time_point now);
  void note_rate(time_point now);
  std::uint64_t samples_done() const;
  /// Returns the sum over all incarnations of all processes.
  std::uint64_t total(std::uint64_t worker_counters::*which) const;
  std::uint64_t total(std::uint64_t server_counters::*which) const;
  template <class Counters>
  histogram merged(accumulated<Counters> incarnation::*counters, histogram Counters::*which) const;
  template <class Value>
  const loss_point* last_with(std::optional<Value> loss_point::*which) const;
  void put_sums(nlohmann::ordered_json& all) const;
  std::map<std::string, std::uint64_t> notes(bool lines) const;
  /// Returns the counts of each port, summed over the members of its node.
  std::map<std::string, port_counters> ports() const;

  job_spec job_;
  node_roles nodes_;
  std::string sync_without_servers_; ///< Empty: the job has servers.
  std::uint64_t batches_before_ = 0;
  time_point started_at_{0};
  std::optional<time_point> finished_at_;
  std::optional<time_point> training_from_;
  std::optional<time_point> training_until_;
  std::uint64_t samples_at_start_ = 0; ///< Samples that a resumed job had done already.
  job_phase phase_ = job_phase::gathering;
  std::uint64_t batches_done_ = 0;
  std::uint64_t checkpoint_ = 0;
  std::map<member_id, incarnation> incarnations_;
  std::map<process_name, process> processes_;
  std::set<member_id> dead_;
  std::map<std::string, std::uint64_t> other_memory_;
  std::vector<recovery> recoveries_;
  std::vector<loss_point> curve_;
  double curve_loss_sum_ = 0.0;
  std::uint64_t curve_loss_count_ = 0;
  std::deque<rate_sample> rates_;
  std::uint64_t acknowledged_ = 0; ///< Acknowledged pushes; next, the time of the last one.
  std::optional<time_point> acknowledged_at_;
  time_point pause_max_{0};
};

} // namespace troupe
