// SIGINT, SIGTERM, SIGHUP and SIGCHLD as events for one waiting thread, whichever one the system
// delivers them to (libraries start threads that block nothing).
#pragma once

#include <chrono>
#include <optional>

namespace troupe {

/// At most one exists at a time, because signal handlers are global. The destructor restores the
/// handlers that it found.
class signal_watch {
public:
  signal_watch();
  ~signal_watch();
  signal_watch(const signal_watch&) = delete;
  signal_watch& operator=(const signal_watch&) = delete;

  /// The next signal that came, or nullopt after `timeout`.
  std::optional<int> wait(std::chrono::milliseconds timeout);
};

} // namespace troupe
