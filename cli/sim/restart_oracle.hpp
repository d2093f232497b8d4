// Says which restarts a launcher owes, as a function of all ends of its processes. It states the
// rules of supervision.hpp a second time, without the code that decides them in a real job.
#pragma once

#include "actors/protocol/session/session.hpp"
#include "cli/sim/world.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe::sim {

/// Hears the events that a session takes, and compares the starts, lines and failures that follow.
class restart_oracle {
public:
  /// `interval`: time between two looks of the session.
  restart_oracle(const session_options& how, std::chrono::milliseconds interval)
      : how_(how), interval_(interval) {}

  /// Takes an event. `may_end`: no end of its process counts, as the job has ended or it leaves.
  void take(const process_started& what, bool may_end, time_point now);
  void take(const process_not_started& what, bool may_end, time_point now);
  void take(const process_ended& what, bool may_end, time_point now);
  void take(const process_word& what, bool may_end, time_point now);
  /// Takes note that the session kills the process.
  void killed(process_name who) { processes_[who].is_killed = true; }
  /// Takes note of the processes that leave the job. They may come back at any time.
  void let_go(const std::function<bool(process_name)>& leaves);

  /// Checks that the process may be started now.
  void check_start(process_name who, time_point now);
  /// Checks the session after it has looked at all: which processes it starts, which failure it
  /// has, and what it said since the last look.
  void check(const session& decides, std::span<const job_event> said, time_point now);

  bool is_given_up(process_name who) const;
  /// Returns whether the text ends with a reason to fail the job.
  bool explains(const std::string& text) const;
  /// Returns whether a limit has failed the job.
  bool has_failed() const { return has_failed_; }
  std::size_t left_out() const { return left_out_; }

private:
  enum class ending : std::uint8_t { crash, sigkill, dismissed, failed_start };
  /// A life of a process, or a start that failed. Ends that the launcher brings about are left out.
  struct life {
    ending how;
    std::chrono::nanoseconds lasted{0};
    time_point ended{0};
    bool has_worked = false;
  };
  struct process {
    std::vector<life> lives; ///< All but the present one.
    time_point begun{0};
    bool has_worked = false;
    bool is_killed = false; ///< By the session.
    std::optional<process_word> said;
    std::optional<time_point> due; ///< The time of the next start; nullopt: none is owed.
    bool is_given_up = false;
  };
  /// The time until the next start, or why no start follows.
  struct next_start {
    std::chrono::milliseconds pause{0};
    std::string too_often{};
  };

  const process_plan& plan_of(process_name who) const;
  std::size_t dismissals(const std::vector<life>& lives) const;
  static std::size_t row(const std::vector<life>& lives);
  next_start after(const std::vector<life>& lives, const supervision& limits) const;
  void give_up(process_name who, const std::string& why);

  const session_options& how_;
  std::chrono::milliseconds interval_;
  std::map<process_name, process> processes_;
  std::vector<std::string> reasons_; ///< Each may be that of the job's failure.
  std::vector<std::string> lines_;   ///< They have to be said at the next look.
  bool has_failed_ = false;
  std::size_t left_out_ = 0;
};

} // namespace troupe::sim
