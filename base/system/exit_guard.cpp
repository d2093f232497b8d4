#include "base/system/exit_guard.hpp"

#include "base/system/leave_process.hpp"
#include "base/user_code.hpp"

#include <unistd.h>

#include <cstdlib>
#include <mutex>
#include <utility>

namespace troupe {

namespace {

/// The state of the guard, which is never destroyed, as exit() may come late.
struct guard_state {
  std::mutex mutex;
  int status_for_0 = 0;
  exit_guard::line_writer write; ///< Null: there is no guard.
  pid_t process = 0;             ///< The process that has the handler.
};

guard_state& the_guard() {
  static auto& state = *new guard_state;
  return state;
}

/// Ends the process if a guard is there. `call`: "exit(3)".
void leave_if_guarded(const std::string& call, int status) {
  auto& guard = the_guard();
  const std::unique_lock lock{guard.mutex, std::try_to_lock}; // A forked child may have it locked.
  if (!lock || !guard.write || guard.process != getpid())
    return;
  guard.write(current_call().value_or("the program") + " called " + call
              + " before the job was done");
  leave_process(status == 0 ? guard.status_for_0 : status);
}

void on_exit_of_process(int status, void*) {
  leave_if_guarded("exit(" + std::to_string(status) + ")", status);
}

/// quick_exit() hides its status from its handlers.
void on_quick_exit_of_process() { leave_if_guarded("quick_exit()", EXIT_FAILURE); }

} // namespace

exit_guard::exit_guard(int status_for_0, line_writer write, std::chrono::milliseconds handlers_max)
    : handlers_max_(handlers_max) {
  auto& guard = the_guard();
  const std::lock_guard lock{guard.mutex};
  guard.status_for_0 = status_for_0;
  guard.write = std::move(write);
  if (std::exchange(guard.process, getpid()) != getpid()) {
    on_exit(on_exit_of_process, nullptr);
    std::at_quick_exit(on_quick_exit_of_process);
  }
}

exit_guard::~exit_guard() {
  const std::lock_guard lock{the_guard().mutex};
  the_guard().write = nullptr;
  limit_exit_handlers(handlers_max_);
}

} // namespace troupe
