// Notices that code of the program calls exit() or quick_exit() before the work of the process is
// done.
#pragma once

#include "base/system/leave_process.hpp"

#include <chrono>
#include <functional>
#include <string>

namespace troupe {

/// While it exists, exit() ends the process at once, with a line that names the caller. A child
/// that the program forked exits as usual. quick_exit() has the same effect, with status 1, as its
/// own is not known. _exit() is not noticed. The destructor limits the time of the handlers of
/// exit() that are registered by then.
///
/// At most one exists at a time. Thread safety: exit() may come on any thread.
class exit_guard {
public:
  /// Takes one line, "worker 1's trainer called exit(0) before the job was done".
  using line_writer = std::function<void(const std::string& line)>;

  /// `status_for_0`: the status of the process in place of 0. Other statuses stay. `handlers_max`:
  /// the time of handlers of exit() once the guard is gone.
  exit_guard(int status_for_0, line_writer write,
             std::chrono::milliseconds handlers_max = exit_handlers_max);
  ~exit_guard();
  exit_guard(const exit_guard&) = delete;
  exit_guard& operator=(const exit_guard&) = delete;

private:
  std::chrono::milliseconds handlers_max_;
};

} // namespace troupe
