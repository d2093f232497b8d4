// Schedules an actor's ticks: when its state machine has an event due, and often enough while
// requests are open to notice their deadlines.
#pragma once

#include "actors/kv.hpp"
#include "actors/open_requests.hpp"
#include "base/clock.hpp"

#include <algorithm>
#include <optional>

namespace troupe {

class tick_timer {
public:
  /// Call it at each tick.
  void ticked(time_point now) {
    if (at_ && *at_ <= now)
      at_.reset();
  }

  /// Sends a tick when it is due. Sends none if an earlier tick is under way, after which this is
  /// called again.
  template <class Self>
  void arm(Self& self, std::optional<time_point> due, bool has_requests) {
    const auto now = now_of(self);
    if (has_requests)
      due = std::min(due.value_or(time_point::max()), now + deadline_scan_interval);
    if (!due || (at_ && *at_ <= *due))
      return;
    at_ = due;
    self.delayed_send(&self, std::max(*due - now, time_point{0}), tick_atom_v);
  }

private:
  std::optional<time_point> at_; ///< Time of the next tick; later ticks may be under way too.
};

} // namespace troupe
