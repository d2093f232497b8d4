// Decides whether a process that ended is started again, and after which pause. supervision.hpp has
// the rules.
#pragma once

#include "actors/protocol/session/supervision.hpp"
#include "base/clock.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// The causes of a process's end that the rules tell apart.
enum class end_cause : std::uint8_t {
  dismissed, ///< The coordinator told it to end, such as after an eviction.
  killed,    ///< The launcher killed it: by --kill, or because it hangs.
  deposed,   ///< Another coordinator leads.
  sigkill,   ///< SIGKILL from outside, such as the system's for lack of memory.
  crash,     ///< Any other end, with whatever exit status or signal.
};

struct restart_pauses {
  /// Pause after an end without work; doubles with each further one in a row, up to `max`.
  std::chrono::milliseconds min{100}, max{5000};
  /// Pause after a dismissal: most likely the whole job ends, and the launcher hears of it soon.
  std::chrono::milliseconds dismissed{1000};
  /// A process that was dismissed in a shorter life did nothing.
  std::chrono::milliseconds quick{2000};
};

struct restart_decision {
  std::chrono::milliseconds pause{0};     ///< Until the next start.
  std::optional<std::string> too_often{}; ///< "6 times ...": no further start follows.
};

/// The rules for one process. A plain state machine.
///
/// Invariants:
/// (1) no start follows the last one of `crashes_max` ends without work in a row. Held by: assert
///     in without_work(); restart_oracle::check_start() in cli/sim/restart_oracle.cpp.
/// (2) ends by `killed` and `deposed` change nothing. Held by: assert in ended();
///     restart_oracle::check() in cli/sim/restart_oracle.cpp.
/// (3) each other end is followed by a start after its pause, or by no start, as supervision.hpp
///     says. Held by: restart_oracle::check() in cli/sim/restart_oracle.cpp.
class restart_rules {
public:
  /// Dismissals in a row, each in a short life, after which no start follows.
  static constexpr int quick_dismissals_max = 6;

  explicit restart_rules(supervision limits = {}, restart_pauses pauses = {})
      : limits_(limits), pauses_(pauses) {}

  void started(time_point now);
  /// Takes note that the process has done work since its start.
  void worked() { has_worked_ = true; }
  restart_decision ended(end_cause why, time_point now);
  restart_decision start_failed();

  outcome then() const { return limits_.then; }

private:
  restart_decision dismissed(time_point now);
  restart_decision without_work();

  supervision limits_;
  restart_pauses pauses_;
  time_point started_at_{0};
  bool has_worked_ = false;
  int without_work_ = 0; ///< Ends and failed starts, in a row.
  int quick_dismissals_ = 0;
  std::vector<time_point> crashes_; ///< Within the window.
};

} // namespace troupe
