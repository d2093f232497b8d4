// Watches over the main thread of a launcher, which code of the program may keep: a simulation and
// a description of the graph run there, and at the end it waits for the threads of trainers and
// evaluators.
#pragma once

#include "actors/graph/launch/end_deadline.hpp"
#include "actors/graph/launch/slow_calls.hpp"
#include "base/clock.hpp"
#include "base/system/signals.hpp"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace troupe {

/// While one exists, it takes the signals of the process. A thread looks for calls of the program's
/// code that do not return, and ends the process at an end_deadline. Thread-safe.
class end_watch {
public:
  /// `program`: stands in front of lines.
  explicit end_watch(std::string program);
  ~end_watch();
  end_watch(const end_watch&) = delete;
  end_watch& operator=(const end_watch&) = delete;

  /// Says that a run begins, which calls wait() from now on. Before it, a signal ends the process.
  void run_begins();

  struct news {
    std::optional<int> signal;
    std::vector<std::string> slow; ///< A line for each call that became slow.
  };
  /// Returns the next signal, or none after `timeout`, and the fresh lines. This object writes the
  /// lines itself if the main thread has not called it for 2 s.
  news wait(std::chrono::milliseconds timeout);
  /// Says that the run has its result. `why`: the line that the main thread will write, which this
  /// object writes in its place if it ends the process; nullopt: it was written.
  void over(int status, std::optional<std::string> why);

private:
  void run();
  void look();
  std::optional<std::string> why() const;

  const std::string program_;
  signal_watch signals_;
  std::mutex mutex_;
  std::condition_variable ends_;
  bool ended_ = false;
  slow_calls calls_;
  std::vector<std::string> fresh_; ///< Lines that were not shown yet.
  std::optional<time_point> waited_at_;
  std::optional<std::string> why_;
  bool is_run_ = false, is_over_ = false;
  end_deadline deadline_;
  std::thread thread_; ///< The last member: it uses the others.
};

} // namespace troupe
