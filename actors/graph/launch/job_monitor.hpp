// Makes the launcher's decisions while it follows a job: lines for the user, reports to the
// coordinator, evaluations, and the end of the job with its failure and exit status.
#pragma once

#include "actors/graph/processes/supervisor.hpp"
#include "actors/roles/observer/observer_mailbox.hpp"
#include "base/clock.hpp"
#include "serialization/messages.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

struct watch_options {
  bool joined = false;          ///< The job is another host's; this host only lends it processes.
  bool evaluate_epochs = false; ///< Evaluate after each epoch, not only the final parameters.
  std::uint64_t batches_per_epoch = 1;
  std::string coordinator;      ///< Its address, for the user.
  bool own_coordinator = false; ///< The only coordinator is a process of this host.
};

/// The actions to take at once.
struct watch_decision {
  std::vector<job_event> events;
  std::optional<std::uint64_t>
    evaluate;                    ///< Evaluate the present parameters, after this many epochs.
  bool coordinator_back = false; ///< A coordinator answers after the death of one.
  bool kill_coordinator = false; ///< It hangs.
  bool wind_down = false;        ///< Processes that end from now on need no successor.
};

/// A plain state machine; all times are of one clock that only grows.
///
/// Invariants:
/// (1) at most one evaluation is requested at a time; a pass that ends meanwhile is left out.
/// (2) the final evaluation is requested once, and only after it the report says `done`.
/// (3) each event of a coordinator is shown once.
class job_monitor {
public:
  job_monitor(watch_options options, time_point now);

  /// Takes the newest news; the same ones may come again.
  watch_decision follow(const job_update& news, time_point now);
  watch_decision process_lost(const supervisor::loss& what);
  /// Ends the job, as a process of this host cannot be kept alive.
  void give_up(const troupe::failure& why, time_point now);
  /// Takes the user's request to stop, the number of a signal. The second request stops the run at
  /// once; if the job is another host's, the first one does.
  watch_decision stop(int signal, time_point now);
  /// Takes the result of the requested evaluation; `failed` is its error. Returns true if it was
  /// the final one.
  bool on_evaluated(const std::optional<troupe::failure>& failed);
  /// Takes note of a failure after the training.
  void fail(const troupe::failure& why) { failure_ = why; }

  enum class standing {
    running,
    over,
    abandoned, ///< The run ends without a result.
  };
  /// Returns the state of the run. `processes`: number of processes of this host that still run.
  standing look(time_point now, std::size_t processes);

  /// Returns the report for the coordinator.
  const observer_status& report() const { return report_; }
  std::optional<time_point> training_since() const { return training_since_; }
  /// Returns the newest committed checkpoint; 0: none.
  std::uint64_t checkpoint() const { return checkpoint_; }
  /// Returns the failure, if there is one so far.
  const std::optional<troupe::failure>& failure() const { return failure_; }
  /// Returns 0; 1 after a failure; 128 + n after signal n, unless the job was done by then.
  int exit_status() const;

private:
  void hear(const job_update& news, time_point now, watch_decision& what);
  void look_for_coordinator(const job_update& news, time_point now, watch_decision& what);
  void show_events(const job_update& news, watch_decision& what);
  void fail(std::string why) { failure_ = {errc::job_failed, std::move(why)}; }
  bool is_silent_since(time_point begin, std::chrono::seconds time, time_point now) const;
  void ask_evaluator(const job_status& status, watch_decision& what);

  watch_options options_;
  time_point started_at_;
  observer_status report_;
  std::optional<troupe::failure> failure_;
  std::uint64_t checkpoint_ = 0;

  std::pair<std::uint64_t, std::uint64_t> heard_{0, 0}; ///< Term and sequence of the latest news.
  std::optional<time_point> heard_at_;
  time_point followed_at_;
  time_point silent_since_; ///< Counts only silence during which this launcher was awake.
  bool told_of_silence_ = false;
  std::uint64_t last_term_ = 0;
  std::optional<std::uint32_t> leader_; ///< The coordinator that sent the latest news.
  struct lost_coordinator {
    std::uint64_t term = 0; ///< The latest term known at that time.
    time_point at{0};
  };
  std::optional<lost_coordinator> lost_coordinator_;
  std::uint64_t events_term_ = 0;
  std::uint64_t events_seen_ = 0;

  std::optional<time_point> training_since_;
  std::optional<time_point> ended_at_;
  std::optional<time_point> gave_up_at_;
  std::optional<time_point> stop_asked_at_;
  int stop_signal_ = 0;
  bool stopped_at_once_ = false;

  bool evaluating_ = false;
  bool evaluating_last_ = false;
  bool last_evaluated_ = false;
  std::uint64_t evaluated_epoch_ = 0;
};

} // namespace troupe
