// Follows the processes of one host: which run, which start again and when, and why one ended.
#pragma once

#include "actors/protocol/process_name.hpp"
#include "actors/protocol/session/process_plan.hpp"
#include "actors/protocol/session/process_word.hpp"
#include "actors/protocol/session/restart_rules.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "serialization/ids.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace troupe {

/// The end of a process, as the system told it.
struct process_end {
  enum class kind : std::uint8_t {
    exited,
    signalled,
    unknown, ///< Other code of the launcher waited for the process.
  };

  int pid = 0; ///< Of the process that ended.
  kind how = kind::exited;
  int number = 0;           ///< Its exit status or signal.
  std::string last_words{}; ///< The last line of its log that can be a reason; may be empty.
  std::string log{};        ///< The path of its log.
  std::string limits{};     ///< The limit of processor time that it had, as a suffix; may be empty.
  bool lacked_memory = false; ///< The system ended processes for lack of memory meanwhile.
};

/// A process that ended without having been told to.
struct process_loss {
  member_id member;
  time_point killed_at{0}; ///< When killed() was called; detected_at if it died by itself.
  time_point detected_at{0};
  /// "killed by signal 9", "exit status 1: the disk is full", or why a coordinator leads no more.
  std::string how;
  bool deposed = false; ///< A coordinator that leads no more.
};

/// A plain state machine; all times are of one clock that only grows.
///
/// Invariants:
/// (1) a process that runs is not due. A process that left or was given up is never due. Held by:
///     assert in take_due().
/// (2) after wind_down() no process is due. Held by: assert in take_due().
/// (3) a process that reaches a limit fails the job, unless its node leaves it out and has another
///     process. A process that is hopeless fails the job, too, and no other end does. Held by:
///     restart_oracle::check() in cli/sim/restart_oracle.cpp.
class process_table {
public:
  explicit process_table(restart_pauses pauses = {}) : pauses_(pauses) {}

  /// Adds a process, or one that left again. It is due at once. Requires: may_add().
  void add(const process_plan& what, time_point now);
  /// Returns the processes that are to be started now, each once.
  std::vector<process_name> take_due(time_point now);
  void started(process_name who, incarnation_id incarnation, time_point now);
  /// Takes note of a start that failed. It is tried again after a pause, as a resource such as
  /// memory may soon be free. It counts for nothing once the process may end.
  void start_failed(process_name who, const failure& why, time_point now);
  /// Takes out a process that does not run.
  void remove(process_name who);
  /// Returns whether the process ever ran.
  bool has_run(process_name who) const { return !processes_.at(who).ran.empty(); }
  /// Returns whether the member is an incarnation of a process of this host, also an earlier one.
  bool ran_as(const member_id& who) const;
  void told(const process_word& what);
  /// Takes note that the process is being killed on purpose. Errors: invalid_argument if it does
  /// not run.
  result<void> killed(process_name who, time_point now);
  /// Takes note of an end. Returns nullopt if the process had been told to end.
  std::optional<process_loss> ended(process_name who, const process_end& end, time_point now);

  /// Sets the processes that are not started again after any end; all others are.
  void let_go(std::set<process_name> leaving);
  /// Ends all restarts; processes may end in any way.
  void wind_down() { winding_down_ = true; }

  /// Returns whether the process neither runs nor is about to be started, and was not given up.
  bool may_add(process_name who) const;
  std::size_t running() const;
  /// Returns the incarnations of all running processes.
  std::map<process_name, incarnation_id> incarnations() const;
  /// Returns the plan of a process that was added.
  const process_plan& plan_of(process_name who) const { return processes_.at(who).plan; }
  /// Returns the reason to give up, if there is one.
  const std::optional<failure>& failed() const { return failed_; }
  /// Returns lines for the user, each once.
  std::vector<std::string> take_lines();

private:
  struct process {
    process_plan plan;
    restart_rules rules;
    bool runs = false;
    bool starts = false; ///< take_due() returned it, and the result is not known yet.
    incarnation_id incarnation{};
    std::set<incarnation_id> ran{}; ///< All incarnations so far.
    std::optional<time_point> killed_at{};
    std::optional<time_point> start_at{};
    std::optional<process_word> said{}; ///< Why it ends.
    bool given_up = false; ///< It is not started again, whether the job goes on or not.
  };

  /// Returns whether any end of the process is right, as the job has ended or it leaves the job.
  bool may_end(process_name who) const;
  void end_restarts(process_name who, process& what, const std::string& why);

  restart_pauses pauses_;
  std::map<process_name, process> processes_;
  std::set<process_name> leaving_;
  std::vector<std::string> lines_;
  bool winding_down_ = false;
  std::optional<failure> failed_;
};

} // namespace troupe
