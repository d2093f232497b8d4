#include "base/system/signals.hpp"

#include "base/system/stop_signals.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <mutex>
#include <stdexcept>
#include <string>

namespace troupe {

namespace {

using namespace std::chrono_literals;

constexpr auto watched = [] {
  std::array<int, stop_signals.size() + 1> all{SIGCHLD};
  std::ranges::copy(stop_signals, all.begin() + 1);
  return all;
}();

// The state that a handler may touch.
int pipe_ends[2] = {-1, -1};
pid_t watching_process = 0; ///< A child that code of the program forks has the handlers, too.
std::array<struct sigaction, watched.size()> found_actions;
std::atomic<int> stop_count = 0, last_stop = 0;
std::atomic<std::int64_t> last_stop_ms = 0;

/// Programs such as timeout(1) send a signal to a process, and at once again to its group: one
/// request of a user.
constexpr std::int64_t repeat_ms = 100;

std::mutex watch_mutex;
bool is_watched = false; ///< A signal_watch exists.

/// Returns whether a request to stop repeats the one before it. Async-signal-safe.
bool is_repeat(int number) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const auto now_ms = std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
  const auto passed_ms = now_ms - last_stop_ms.exchange(now_ms);
  return last_stop.exchange(number) == number && passed_ms < repeat_ms && stop_count > 0;
}

void on_signal(int number) {
  const auto saved = errno;
  if (getpid() != watching_process) {
    signal(number, SIG_DFL);
    raise(number); // It is delivered after the return.
    errno = saved;
    return;
  }
  if (number != SIGCHLD) {
    if (is_repeat(number)) {
      errno = saved;
      return;
    }
    ++stop_count;
  }
  const auto byte = static_cast<unsigned char>(number);
  // A full pipe wakes the waiting thread anyway.
  [[maybe_unused]] const auto written = write(pipe_ends[1], &byte, 1);
  errno = saved;
}

/// Sets the handler of each signal that is not ignored. nohup and background jobs start a program
/// with some signals ignored; they stay ignored. SIGCHLD is always handled, because children must
/// be waited for.
void set_handlers() {
  struct sigaction ours {};
  ours.sa_handler = on_signal;
  ours.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < watched.size(); ++i)
    if (watched[i] == SIGCHLD || found_actions[i].sa_handler != SIG_IGN)
      sigaction(watched[i], &ours, nullptr);
}

} // namespace

signal_watch::signal_watch() {
  if (pipe2(pipe_ends, O_CLOEXEC | O_NONBLOCK) != 0)
    throw std::runtime_error{std::string{"cannot make a pipe: "} + std::strerror(errno)};
  const std::lock_guard lock{watch_mutex};
  is_watched = true;
  stop_count = 0;
  for (std::size_t i = 0; i < watched.size(); ++i)
    sigaction(watched[i], nullptr, &found_actions[i]);
  watching_process = getpid();
  set_handlers();
}

signal_watch::~signal_watch() {
  const std::lock_guard lock{watch_mutex};
  is_watched = false;
  for (std::size_t i = 0; i < watched.size(); ++i)
    sigaction(watched[i], &found_actions[i], nullptr);
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

std::optional<int> signal_watch::wait(std::chrono::milliseconds timeout) {
  using clock = std::chrono::steady_clock;
  const auto deadline = clock::now() + timeout;
  pollfd reading{pipe_ends[0], POLLIN, 0};
  unsigned char byte = 0;
  for (auto rest = timeout;;) {
    const int ready = poll(&reading, 1, static_cast<int>(rest.count()));
    if (ready > 0 && read(pipe_ends[0], &byte, 1) == 1)
      return byte;
    if (ready >= 0 || errno != EINTR)
      return std::nullopt;
    // Signals of others, such as a profiler's timer, interrupt it again and again.
    rest = std::max(0ms, std::chrono::ceil<std::chrono::milliseconds>(deadline - clock::now()));
  }
}

void signal_watch::renew() {
  const std::lock_guard lock{watch_mutex};
  if (is_watched)
    set_handlers();
}

signal_watch::requests signal_watch::stops() { return {stop_count, last_stop}; }

} // namespace troupe
