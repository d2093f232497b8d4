// Decides when an actor of a program stops, ends, and asks for values again. A plain state machine:
// the shell has the threads and the messages.
#pragma once

#include "base/clock.hpp"
#include "base/error.hpp"

#include <chrono>
#include <optional>

namespace troupe {

/// Steps of the shell after an event, in this order.
struct actor_steps {
  bool calls_stop = false; ///< Has the program's stop() called.
  bool asks_again = false; ///< Sends the question that failed.
  bool has_worked = false; ///< Says that the actor has done work.
  bool reports = false;    ///< Sends a status.
  bool ends = false;       ///< The member ends.

  bool operator==(const actor_steps&) const = default;
};

/// The life of an actor from its start to its end.
/// The program's stop() is called at most once, and the member ends at most once. A member that the
/// coordinator stops ends when stop() has returned, or after stop_patience.
class actor_life {
public:
  /// Time for the program's stop().
  static constexpr std::chrono::seconds stop_patience{5};
  /// Time after which an actor that still runs has done work: a death afterwards counts anew.
  static constexpr std::chrono::seconds proof{1};

  /// `has_body`: there is a thread for the program's code.
  actor_life(time_point begun, bool has_body) : begun_(begun), has_body_(has_body) {}

  /// A desired state came. `winds_down`: all batches are applied. `stops`: the member is to end.
  actor_steps desired(bool winds_down, bool stops, time_point now);
  /// The program's stop() has returned.
  actor_steps stopped();
  /// The actor cannot go on. The first reason counts.
  actor_steps failed(const failure& why);
  /// A question for values was not answered.
  actor_steps question_failed(const failure& why);
  actor_steps tick(time_point now);

  const std::optional<failure>& failure_told() const { return failed_; }
  bool has_stopped() const { return has_stopped_; }

private:
  actor_steps end();

  const time_point begun_;
  const bool has_body_;
  bool winds_down_ = false;  ///< stop() was called for.
  bool has_stopped_ = false; ///< It has returned.
  bool is_to_end_ = false;
  bool has_ended_ = false;
  bool owes_question_ = false;
  time_point stop_by_{0};
  std::optional<failure> failed_;
};

} // namespace troupe
