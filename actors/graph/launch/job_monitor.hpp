// What the launcher decides while it follows a job: what the user is shown, what the coordinator is
// told, when the evaluator is asked, and when it is over, with which failure and exit status.
#pragma once

#include "actors/graph/launch/supervisor.hpp"
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
  bool joined = false;          ///< The job is another host's; this one only lends it processes.
  bool evaluate_epochs = false; ///< Not only the final parameters.
  std::uint64_t batches_per_epoch = 1;
  std::string coordinator;      ///< Its address, for the user.
  bool own_coordinator = false; ///< It is a process of this host, and the only one.
};

/// What is to be done at once.
struct watch_decision {
  std::vector<std::string> events; ///< Lines for the user.
  std::optional<std::uint64_t>
    evaluate;                    ///< Evaluate the present parameters, after this many epochs.
  bool coordinator_back = false; ///< One answers after the death of one.
  bool kill_coordinator = false; ///< It hangs.
  bool wind_down = false;        ///< Processes that end from now on need no successor.
};

/// A plain state machine; all times are of one clock that only grows.
///
/// Invariants:
/// (1) at most one judgement is asked for at a time; a pass that ends meanwhile is left out.
/// (2) the last judgement is asked for once, and only after it the report says `done`.
/// (3) each event of a coordinator is shown once.
class job_monitor {
public:
  job_monitor(watch_options options, time_point now);

  /// The newest news; the same ones may come again.
  watch_decision follow(const job_update& news, time_point now);
  watch_decision process_lost(const supervisor::loss& what);
  /// A process of this host cannot be kept alive.
  void give_up(const std::string& why, time_point now);
  /// The user's wish, the number of a signal. The second one is obeyed at once; where the job is
  /// another host's, the first.
  watch_decision stop(int signal, time_point now);
  /// The judgement that was asked for is there. `failed`: why it is none. Whether it was the last.
  bool on_evaluated(const std::string& failed);
  /// What goes wrong after the training.
  void fail(const std::string& why) { failure_ = why; }

  enum class standing {
    running,
    over,
    abandoned, ///< There is no result to write down.
  };
  /// `processes`: how many of this host still run.
  standing look(time_point now, std::size_t processes);

  /// What the coordinator has to know.
  const observer_status& report() const { return report_; }
  std::optional<time_point> training_since() const { return training_since_; }
  /// Newest committed; 0: none.
  std::uint64_t checkpoint() const { return checkpoint_; }
  /// Empty: none so far.
  const std::string& failure() const { return failure_; }
  /// 0; 1 after a failure; 128 + n after signal n.
  int exit_status() const;

private:
  void hear(const job_update& news, time_point now, watch_decision& what);
  void look_for_coordinator(const job_update& news, time_point now, watch_decision& what);
  void show_events(const job_update& news, watch_decision& what);
  bool is_silent_since(time_point begin, std::chrono::seconds time, time_point now) const;
  void ask_evaluator(const job_status& status, watch_decision& what);

  watch_options options_;
  time_point started_at_;
  observer_status report_;
  std::string failure_;
  std::uint64_t checkpoint_ = 0;

  std::pair<std::uint64_t, std::uint64_t> heard_{0, 0}; ///< Term and sequence of the latest news.
  std::optional<time_point> heard_at_;
  time_point followed_at_;
  time_point silent_since_; ///< Of what this launcher was awake for.
  bool told_of_silence_ = false;
  std::uint64_t last_term_ = 0;
  std::optional<std::uint32_t> leader_; ///< The coordinator that was heard last.
  struct lost_coordinator {
    std::uint64_t term = 0; ///< The latest that was heard of.
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
