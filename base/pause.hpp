// A pause between two questions to another process. Only for threads on which nothing else runs.
#pragma once

#include <poll.h>

#include <chrono>

namespace troupe::storage::detail {

inline void pause(std::chrono::milliseconds time) {
  ::poll(nullptr, 0, static_cast<int>(time.count()));
}

} // namespace troupe::storage::detail
