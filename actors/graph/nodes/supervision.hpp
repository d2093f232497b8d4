// Limits the restarts of the processes of a node.
#pragma once

#include <chrono>
#include <cstdint>

namespace troupe {

/// The action when the processes of a node end too often.
enum class outcome : std::uint8_t {
  fail_job, ///< The job ends with the process's last words.
  /// The job goes on without the process, while its host has other ones of this node. Workers only,
  /// and not with all_reduce.
  leave_out,
};

/// Limits the restarts of a process. An end by --kill or with exit status 0 is no crash. Another
/// SIGKILL, such as that of the system, counts only in the first 2 s of the process.
struct supervision {
  /// Crashes within `window`, or crashes in a row in the first 2 s, after which `then` happens;
  /// 1 .. 1000.
  int crashes_max = 6;
  std::chrono::seconds window{120}; ///< 1 s or more.
  outcome then = outcome::fail_job;
};

} // namespace troupe
