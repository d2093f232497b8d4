// Time for actors. Deciders get it as an argument instead.
#pragma once

#include <chrono>

namespace troupe {

/// Time since the machine started; never goes back.
inline std::chrono::nanoseconds steady_now() {
  return std::chrono::steady_clock::now().time_since_epoch();
}

/// The same clock as an actor sees it; a test may stand in for it.
template <class Actor>
std::chrono::nanoseconds now_of(const Actor& self) {
  return self.clock().now().time_since_epoch();
}

} // namespace troupe
