// Declares what happens to processes of a node that end again and again.
#pragma once

#include <chrono>
#include <cstdint>

namespace troupe {

enum class outcome : std::uint8_t {
  fail_job,  ///< The job ends with the process's last words.
  leave_out, ///< The job goes on without the process. Workers only, and not with all_reduce.
};

/// A process that ends is started again, unless it does so too often. A process that a --kill or
/// the system killed with SIGKILL counts only if it lived for less than 2 s.
struct supervision {
  int crashes_max =
    6; ///< Crashes within `window`, or ends after less than 2 s in a row; 1 .. 1000.
  std::chrono::seconds window{120}; ///< From 1 s on.
  outcome then = outcome::fail_job;
};

} // namespace troupe
