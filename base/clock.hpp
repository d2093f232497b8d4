// Time for actors. Deciders get it as an argument instead.
#pragma once

#include <chrono>

namespace troupe {

/// Any clock that only grows: the machine's, an actor's, or a simulator's.
using time_point = std::chrono::nanoseconds;

/// Time since the machine started; never goes back.
inline time_point steady_now() { return std::chrono::steady_clock::now().time_since_epoch(); }

/// Like steady_now(), and goes on while the machine sleeps: what leases end by.
time_point boot_now();

/// The clock of steady_now() as an actor sees it; a test may stand in for it.
template <class Actor>
time_point now_of(const Actor& self) {
  return self.clock().now().time_since_epoch();
}

} // namespace troupe
