// Decides for a launcher that runs a job: which processes start and start again, which lines the
// user reads, which parameters are evaluated, and when the run is over, with which status.
#pragma once

#include "actors/protocol/session/coordinator_watch.hpp"
#include "actors/protocol/session/evaluation_plan.hpp"
#include "actors/protocol/session/hung_processes.hpp"
#include "actors/protocol/session/job_update.hpp"
#include "actors/protocol/session/notice_board.hpp"
#include "actors/protocol/session/process_plan.hpp"
#include "actors/protocol/session/process_table.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/notice.hpp"
#include "serialization/job_event.hpp"
#include "serialization/messages.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace troupe {

/// Time for the last checkpoint after the user's request to stop. An end_deadline is later.
constexpr std::chrono::seconds last_checkpoint_max{20};

struct session_options {
  std::vector<process_plan> processes{}; ///< Of this host, in the order of their first starts.
  /// The plan of a server that is added to the job later. Nullopt: this host starts none.
  std::optional<process_plan> added_server{};
  std::set<std::uint32_t> servers_elsewhere{}; ///< The servers that other hosts run.
  std::size_t standbys = 0; ///< Processes that do not end by themselves when the job does.
  std::vector<kill_plan> kills{};
  restart_pauses pauses{};

  bool joined = false; ///< The job is another host's; this host only lends it processes.
  evaluated_parameters evaluates = evaluated_parameters::final;
  bool exports = false; ///< Writes the final parameters to a file.
  /// False: no coordinator answers a report, and the members end by themselves.
  bool has_coordinator = true;
  std::uint64_t batches_per_epoch = 1;
  coordinator_watch_options coordinator{};
};

// -- events --

struct process_started {
  process_name who;
  incarnation_id incarnation;
};
struct process_not_started {
  process_name who;
  failure why;
};
struct process_ended {
  process_name who;
  process_end how;
};
/// The parameters of an epoch were evaluated, or `failed` says why not.
struct epoch_evaluated {
  std::optional<failure> failed;
};
/// The file of an export_effect or results_effect was written, or `failed` says why not.
struct file_written {
  std::optional<failure> failed;
};
/// The user asks the run to stop: the number of a signal.
struct stop_asked {
  int signal = 0;
};
struct time_passed {};

using session_event =
  std::variant<process_started, process_not_started, process_ended, process_word, notice,
               job_update, epoch_evaluated, file_written, stop_asked, time_passed>;

// -- effects --

/// Start the process. The answer is process_started or process_not_started.
struct start_effect {
  process_name who;
};
/// Kill the process at once. Its end is an event as any other.
struct kill_effect {
  process_name who;
};
/// Evaluate the present parameters, after this many epochs. The answer is epoch_evaluated.
struct evaluate_effect {
  std::uint64_t epoch = 0;
};
/// The final parameters were evaluated. `exports`: write them; the answer is file_written.
struct trained_effect {
  bool exports = false;
};
/// Show this to the user, and write it down.
struct say_effect {
  job_event what;
};
/// Count a member that died, for the report.
struct lost_effect {
  process_loss what;
};
/// Count a coordinator that answers after the death of one, for the report.
struct recovered_effect {};
/// The run is over: write its results. The answer is file_written.
struct results_effect {};
/// End the run. `abandoned`: it has no result.
struct end_effect {
  int status = 0;
  std::optional<failure> why;
  bool abandoned = false;
};

using session_effect =
  std::variant<start_effect, kill_effect, evaluate_effect, trained_effect, say_effect, lost_effect,
               recovered_effect, results_effect, end_effect>;
using session_effects = std::vector<session_effect>;

/// A plain state machine; all times are of one clock that only grows.
///
/// Invariants:
/// (1) at most one end_effect is returned, and no effect after it. Held by: assert in end().
/// (2) the report says `done` only after the final evaluation. Held by: assert in on().
/// (3) no process is started after the job has ended. Held by: assert in take().
class session {
public:
  session(session_options options, time_point now);

  /// Takes an event. The effects are to be carried out in order.
  session_effects take(const session_event& what, time_point now);

  const session_options& options() const { return options_; }
  /// Returns the report for the coordinator.
  const observer_status& report() const { return report_; }
  /// Returns the newest committed checkpoint; 0: none.
  std::uint64_t checkpoint() const { return checkpoint_; }
  /// Returns whether the newest checkpoint has all work that was done when a stop was asked for.
  bool is_saved() const;
  /// Returns the failure, if there is one so far.
  const std::optional<failure>& failed() const { return failure_; }
  /// Returns 0; 1 after a failure; 128 + n after signal n, unless the job was done by then.
  int exit_status() const;

private:
  void on(const process_started& what);
  void on(const process_not_started& what);
  void on(const process_ended& what);
  void on(const process_word& what);
  void on(const notice& what);
  void on(const job_update& what);
  void on(const epoch_evaluated& what);
  void on(const file_written& what);
  void on(const stop_asked& what);
  void on(const time_passed& what);

  void say(job_event what) { effects_.push_back(say_effect{std::move(what)}); }
  void lose(const process_loss& what);
  void kill(process_name who);
  void kill_planned();
  void follow_servers(const job_status& job);
  void give_up(const failure& why);
  void fail(std::string why) { failure_ = {errc::job_failed, std::move(why)}; }
  void look_at_end();
  void finish();
  void abandon(const std::string& why);
  void end(bool abandoned);
  std::size_t running() const;
  bool awaits_final_evaluation() const;

  session_options options_;
  observer_status report_;
  process_table processes_;
  coordinator_watch coordinator_;
  evaluation_plan evaluations_;
  hung_processes hung_;
  notice_board notices_;
  std::optional<failure> failure_;
  std::uint64_t checkpoint_ = 0;
  bool is_newer_lost_ = false;    ///< An attempt after `checkpoint_` failed.
  std::set<std::uint32_t> added_; ///< Servers that were added to the job, and started here.

  time_point started_at_;
  std::optional<time_point> training_since_;
  bool is_finished_ = false;             ///< All batches are done.
  std::optional<time_point> ended_at_;   ///< The coordinator sent this launcher away.
  std::optional<time_point> gave_up_at_; ///< A process of this host cannot be kept alive.
  std::optional<time_point> stop_asked_at_;
  std::uint64_t checkpoint_at_stop_ = 0;
  int stop_signal_ = 0;
  bool stopped_at_once_ = false;

  enum class stage : std::uint8_t { running, writing, over };
  stage stage_ = stage::running;
  // For the event that is being taken:
  time_point now_;
  session_effects effects_;
};

} // namespace troupe
