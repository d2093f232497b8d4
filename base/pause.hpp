// Pauses between two requests to another process. Only for threads that run nothing else.
#pragma once

#include <poll.h>

#include <chrono>

namespace troupe::storage::detail {

inline void pause(std::chrono::milliseconds time) {
  ::poll(nullptr, 0, static_cast<int>(time.count()));
}

} // namespace troupe::storage::detail
