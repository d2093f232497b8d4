// Starts the processes of one host, sees them end (waitpid: certain and at once), and reads their
// lines. Decides nothing: actors/protocol/session does. No actors, no threads.
#pragma once

#include "actors/graph/processes/notice_pipe.hpp"
#include "actors/protocol/process_name.hpp"
#include "actors/protocol/session/session.hpp"
#include "base/error.hpp"
#include "base/system/own_executable.hpp"

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

struct child_options {
  std::filesystem::path executable = own_executable();
  /// Name and arguments of every process; `child_arguments` are added.
  std::vector<std::string> command;
  /// Standard output and error of each process go to logs/ROLE-INDEX.log here.
  std::filesystem::path run_directory;
};

/// Children are killed by the system when the thread that started them ends, so a launcher that is
/// killed leaves nothing running. Thread safety: none.
class child_processes {
public:
  explicit child_processes(child_options options);
  /// Kills the processes that still run.
  ~child_processes();
  child_processes(const child_processes&) = delete;
  child_processes& operator=(const child_processes&) = delete;

  /// Starts a process. `inherited`: a descriptor that the child keeps open, or -1. Errors:
  /// io_failed. Requires: it does not run.
  result<process_started> start(process_name who, int inherited);
  /// Returns the lines and the ends of processes since the last call. The lines of a process come
  /// before its end.
  std::vector<session_event> tick();
  /// Sends SIGKILL, if the process runs.
  void kill(process_name who);
  /// Kills all, and waits for their ends.
  void kill_all();

  /// Returns the pid of a running process.
  std::optional<pid_t> pid_of(process_name who) const;

private:
  struct child {
    pid_t pid = 0;
    off_t log_begin = 0; ///< Size of its log when it was started.
  };

  process_end end_of(process_name who, const child& what, int status);
  std::string last_words(process_name who, const child& what) const;

  child_options options_;
  notice_pipe pipe_;
  std::uint64_t out_of_memory_kills_; ///< The count when a process ended last.
  std::map<process_name, child> children_;
};

} // namespace troupe
