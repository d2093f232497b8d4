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

  /// Sets the handlers again if there is a signal_watch: other code of the process may have set its
  /// own. Thread-safe.
  static void renew();

  /// The signals that ask the process to end.
  struct requests {
    int count = 0;
    int last = 0; ///< The number of the last signal.
  };
  /// Returns the requests since the present or last signal_watch was made. Thread-safe.
  static requests stops();
};

} // namespace troupe
