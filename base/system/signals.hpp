// Turns SIGINT, SIGTERM, SIGHUP and SIGCHLD into events for one waiting thread. The system may
// deliver them to any thread: libraries start threads that block no signals.
#pragma once

#include <chrono>
#include <optional>

namespace troupe {

/// At most one exists at a time, because signal handlers are global. The destructor restores the
/// previous handlers.
class signal_watch {
public:
  signal_watch();
  ~signal_watch();
  signal_watch(const signal_watch&) = delete;
  signal_watch& operator=(const signal_watch&) = delete;

  /// Returns the next signal, or nullopt after `timeout`.
  std::optional<int> wait(std::chrono::milliseconds timeout);
};

} // namespace troupe
