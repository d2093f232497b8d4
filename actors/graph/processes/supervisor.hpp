// Starts the processes of one host, sees them end (waitpid: certain and at once), and starts them
// again. Only the launcher's main thread uses it; no actors, no threads.
#pragma once

#include "actors/graph/nodes/supervision.hpp"
#include "actors/graph/processes/notice_board.hpp"
#include "actors/graph/processes/notice_pipe.hpp"
#include "actors/graph/processes/restart_rules.hpp"
#include "actors/protocol/process_name.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/system/own_executable.hpp"
#include "serialization/ids.hpp"

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

struct supervisor_options {
  std::filesystem::path executable = own_executable();
  /// Name and arguments of every process; `child_arguments` are added.
  std::vector<std::string> command;
  /// Standard output and error of each process go to logs/ROLE-INDEX.log here.
  std::filesystem::path run_directory;
  /// For processes of a role; a role without an entry has the default.
  std::map<role, supervision> on_death = {};
  restart_pauses pauses = {};
};

/// Children are killed by the system when the thread that started them ends, so a launcher that is
/// killed leaves nothing running.
class supervisor {
public:
  /// A process that ended without having been told to.
  struct loss {
    member_id member;
    pid_t pid = 0;           ///< The pid that it had.
    time_point killed_at{0}; ///< When kill() was called; detected_at if it died by itself.
    time_point detected_at{0};
    /// "killed by signal 9", "exit status 1: the disk is full", or why a coordinator leads no more.
    std::string how;
    bool deposed = false; ///< A coordinator that leads no more.
  };

  explicit supervisor(supervisor_options options);
  /// Kills the processes that still run.
  ~supervisor();
  supervisor(const supervisor&) = delete;
  supervisor& operator=(const supervisor&) = delete;

  /// Starts a process. `inherited`: a descriptor that the child keeps open, or -1. Errors:
  /// io_failed, which is not retried; invalid_argument if the process runs.
  result<void> start(process_name who, int inherited, time_point now);
  /// Collects ended processes, and starts processes again whose pause is over. A start that fails
  /// is retried as after an end without work.
  std::vector<loss> tick(time_point now);
  /// Returns the notices of processes as lines for the user.
  std::vector<std::string> notices(time_point now);
  /// Sends SIGKILL. Errors: invalid_argument if no such process runs.
  result<void> kill(process_name who, time_point now);
  /// Sets the processes that are not started again after any end; all others are.
  void let_go(std::set<process_name> leaving) { leaving_ = std::move(leaving); }
  /// Returns whether the process runs or is about to be started again.
  bool is_kept(process_name who) const;
  /// Ends all restarts; processes may end in any way.
  void wind_down() { winding_down_ = true; }
  void kill_all();

  std::size_t running() const;
  /// Returns the reason to give up, if there is one.
  const std::optional<failure>& failed() const { return failed_; }
  /// Returns the pid of a running process.
  std::optional<pid_t> pid_of(process_name who) const;
  /// Returns the incarnations of all running processes.
  std::map<process_name, incarnation_id> incarnations() const;

private:
  struct process {
    explicit process(restart_rules as) : rules(std::move(as)) {}

    pid_t pid = 0; ///< 0: not running.
    incarnation_id incarnation;
    int inherited = -1;
    off_t log_begin = 0; ///< Size of its log when it was started.
    std::optional<time_point> killed_at;
    std::optional<time_point> start_at;
    std::optional<notice> said; ///< Why it ends.
    restart_rules rules;
    bool left_out = false; ///< It is not started again, and the job goes on.
  };

  result<void> launch(process_name who, process& what, time_point now);
  void ended(process_name who, process& what, int status, time_point now,
             std::vector<loss>& losses);
  void start_failed(process_name who, process& what, const failure& why, time_point now);
  supervision limits_of(role as) const;
  void end_restarts(process_name who, process& what, const std::string& why);
  void read_notices(time_point now);
  std::string text_of_end(const process& what, int status);
  std::string reason_of_end(process_name who, const process& what, int status) const;
  std::string last_words(process_name who, const process& what) const;

  supervisor_options options_;
  std::vector<std::string> told_; ///< Lines for notices().
  notice_pipe pipe_;
  notice_board notices_;
  std::uint64_t out_of_memory_kills_; ///< The count when a process ended last.
  std::map<process_name, process> processes_;
  std::set<process_name> leaving_;
  bool winding_down_ = false;
  std::optional<failure> failed_;
};

} // namespace troupe
