#include "base/system/signals.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

namespace troupe {

namespace {

constexpr std::array watched{SIGINT, SIGTERM, SIGHUP, SIGCHLD};

// The state that a handler may touch.
int pipe_ends[2] = {-1, -1};
std::array<struct sigaction, watched.size()> found_actions;

void on_signal(int number) {
  const auto saved = errno;
  const auto byte = static_cast<unsigned char>(number);
  // A full pipe wakes the waiting thread anyway.
  [[maybe_unused]] const auto written = write(pipe_ends[1], &byte, 1);
  errno = saved;
}

} // namespace

signal_watch::signal_watch() {
  if (pipe2(pipe_ends, O_CLOEXEC | O_NONBLOCK) != 0)
    throw std::runtime_error{std::string{"cannot make a pipe: "} + std::strerror(errno)};
  struct sigaction ours {};
  ours.sa_handler = on_signal;
  ours.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < watched.size(); ++i) {
    sigaction(watched[i], nullptr, &found_actions[i]);
    // nohup and background jobs start a program with some signals ignored; they stay ignored.
    // SIGCHLD is always handled, because children must be waited for.
    if (watched[i] == SIGCHLD || found_actions[i].sa_handler != SIG_IGN)
      sigaction(watched[i], &ours, nullptr);
  }
}

signal_watch::~signal_watch() {
  for (std::size_t i = 0; i < watched.size(); ++i)
    sigaction(watched[i], &found_actions[i], nullptr);
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

std::optional<int> signal_watch::wait(std::chrono::milliseconds timeout) {
  pollfd reading{pipe_ends[0], POLLIN, 0};
  unsigned char byte = 0;
  int ready = 0;
  do // A signal caused the interruption, so the second poll returns at once.
    ready = poll(&reading, 1, static_cast<int>(timeout.count()));
  while (ready < 0 && errno == EINTR);
  if (ready <= 0 || read(pipe_ends[0], &byte, 1) != 1)
    return std::nullopt;
  return byte;
}

} // namespace troupe
