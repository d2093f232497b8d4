// Declares what happens to processes of a node that end again and again.
#pragma once

#include <chrono>
#include <cstdint>

namespace troupe {

enum class outcome : std::uint8_t {
  fail_job, ///< The job ends with the process's last words.
  /// The job goes on without the process, while its host has other ones of this node. Workers only,
  /// and not with all_reduce.
  leave_out,
};

/// A process that ends is started again, unless it does so too often. An end by --kill does not
/// count, and neither does one with exit status 0. Another SIGKILL, such as that of the system,
/// counts only if the process lived for less than 2 s.
struct supervision {
  /// Crashes within `window`, or ends after less than 2 s in a row; 1 .. 1000.
  int crashes_max = 6;
  std::chrono::seconds window{120}; ///< From 1 s on.
  outcome then = outcome::fail_job;
};

} // namespace troupe
