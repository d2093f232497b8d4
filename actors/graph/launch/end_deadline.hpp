// Decides when a launcher's process has to end although code of the program does not return.
#pragma once

#include "base/clock.hpp"

#include <chrono>
#include <optional>

namespace troupe {

/// A plain state machine. The process ends by itself in most cases, and sooner.
class end_deadline {
public:
  /// Time from the first signal to the end. The user is promised 30 s.
  static constexpr std::chrono::seconds after_signal{25};
  /// Time from the second signal to the end. The user is promised 1 s.
  static constexpr std::chrono::milliseconds after_second{600};
  /// Time that calls of the program's code get to return once the run has its result.
  static constexpr std::chrono::seconds after_result{5};

  /// A run begins, which takes note of the signals itself. Before it, a signal is due at once.
  void run_begins() { is_run_ = true; }
  /// `count`: signals so far that ask the run to stop. `number`: the last one.
  void signalled(int count, int number, time_point now);
  /// The run has its result; only the ends of its actors are waited for.
  void over(int status, time_point now);

  /// Returns the status with which the process has to end now; nullopt: it may go on.
  /// `calls_open`: whether code of the program has not returned.
  std::optional<int> look(bool calls_open, time_point now) const;

private:
  struct result_of_run {
    int status = 0;
    time_point at{0};
  };

  bool is_run_ = false;
  std::optional<time_point> first_at_, second_at_; ///< Signals.
  int number_ = 0;
  std::optional<result_of_run> result_;
};

} // namespace troupe
