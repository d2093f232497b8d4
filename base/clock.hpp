// Clocks for actors. Deciders get the time as an argument instead.
#pragma once

#include <chrono>

namespace troupe {

/// Any clock that only grows: the machine's, an actor's, or a simulator's.
using time_point = std::chrono::nanoseconds;

/// Returns the time since the machine started; never goes back.
inline time_point steady_now() { return std::chrono::steady_clock::now().time_since_epoch(); }

/// Is like `steady_now()`, but also advances while the machine sleeps. Leases end by this clock.
time_point boot_now();

/// Returns `steady_now()` by the actor's clock, which a test may replace.
template <class Actor>
time_point now_of(const Actor& self) {
  return self.clock().now().time_since_epoch();
}

} // namespace troupe
