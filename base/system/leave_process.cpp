#include "base/system/leave_process.hpp"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string_view>

namespace troupe {

namespace {

bool can_write(int descriptor) {
  pollfd writing{descriptor, POLLOUT, 0};
  return poll(&writing, 1, 0) > 0 && (writing.revents & POLLOUT) != 0;
}

/// Async-signal-safe.
void write_text(std::string_view text) {
  if (!can_write(STDERR_FILENO))
    return;
  [[maybe_unused]] const auto written = write(STDERR_FILENO, text.data(), text.size());
}

/// The limit on handlers of exit(). It is never destroyed, as it is used while the process exits.
struct exit_limit {
  std::chrono::milliseconds most{0};
  std::string line;
  int status = 0; ///< Of exit().
};

exit_limit& the_exit_limit() {
  static auto& limit = *new exit_limit;
  return limit;
}

void on_exit_deadline(int) {
  write_text(the_exit_limit().line);
  _exit(the_exit_limit().status);
}

/// Returns a real-time signal that has no handler.
int unused_signal() {
  struct sigaction found {};
  int number = SIGRTMAX;
  while (number > SIGRTMIN
         && (sigaction(number, nullptr, &found) != 0 || found.sa_handler != SIG_DFL))
    --number;
  return number;
}

/// A timer needs neither memory nor a thread, which the process may lack.
void begin_exit_limit(int status, void*) {
  the_exit_limit().status = status;
  const int number = unused_signal();
  struct sigaction how {};
  how.sa_handler = on_exit_deadline;
  sigaction(number, &how, nullptr);
  sigset_t due;
  sigemptyset(&due);
  sigaddset(&due, number);
  pthread_sigmask(SIG_UNBLOCK, &due, nullptr);
  sigevent signalled{};
  signalled.sigev_notify = SIGEV_SIGNAL;
  signalled.sigev_signo = number;
  timer_t timer{};
  if (timer_create(CLOCK_MONOTONIC, &signalled, &timer) != 0)
    return;
  const auto seconds = std::chrono::floor<std::chrono::seconds>(the_exit_limit().most);
  const std::chrono::nanoseconds rest = the_exit_limit().most - seconds;
  const itimerspec once{{}, {seconds.count(), rest.count()}};
  timer_settime(timer, 0, &once, nullptr);
}

} // namespace

void write_without_waiting(const std::string& line) { write_text(line + "\n"); }

void leave_process(int status, const std::string& line) {
  if (ftrylockfile(stdout) == 0 && can_write(STDOUT_FILENO))
    fflush_unlocked(stdout);
  if (!line.empty())
    write_without_waiting(line);
  _exit(status);
}

void limit_exit_handlers(std::chrono::milliseconds most) {
  auto& limit = the_exit_limit();
  limit.most = most;
  limit.line = std::string{program_invocation_short_name}
               + ": handlers of exit() did not return within "
               + std::to_string(std::chrono::ceil<std::chrono::seconds>(most).count()) + " s\n";
  on_exit(begin_exit_limit, nullptr);
}

} // namespace troupe
