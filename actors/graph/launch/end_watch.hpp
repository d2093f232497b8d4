// Watches over the main thread of a launcher, which code of the program may keep: a simulation and
// a description of the graph run there, and at the end it waits for the threads of trainers and
// evaluators.
#pragma once

#include "actors/graph/launch/end_deadline.hpp"
#include "base/clock.hpp"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace troupe {

/// While one exists, a thread names calls of the program's code that do not return, unless the main
/// thread does so itself. It ends the process at an end_deadline. Thread-safe.
class end_watch {
public:
  /// `program`: stands in front of lines.
  explicit end_watch(std::string program);
  ~end_watch();
  end_watch(const end_watch&) = delete;
  end_watch& operator=(const end_watch&) = delete;

  /// Says that the main thread works, and tells of slow calls itself for the next 2 s.
  void main_thread_works();
  /// Says that the run has its result. `why`: the line that the main thread will write, which this
  /// thread writes in its place if it ends the process; nullopt: it was written.
  void over(int status, std::optional<std::string> why);

private:
  void run();
  void look(class slow_calls& calls);

  const std::string program_;
  std::mutex mutex_;
  std::condition_variable ends_;
  bool ended_ = false;
  std::optional<time_point> worked_at_;
  std::optional<std::string> why_;
  bool is_over_ = false;
  end_deadline deadline_;
  std::thread thread_; ///< The last member: it uses the others.
};

} // namespace troupe
