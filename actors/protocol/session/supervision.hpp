// Limits the restarts of the processes of a node.
#pragma once

#include <chrono>
#include <cstdint>

namespace troupe {

/// The action when the processes of a node end too often.
enum class outcome : std::uint8_t {
  fail_job, ///< The job ends with the process's last words.
  /// The job goes on without the process, while its host has other ones of this node. Workers and
  /// actors only, and not with all_reduce.
  leave_out,
};

/// Limits the restarts of a process. Two kinds of ends count, each for itself:
///
/// * An end before the process has done any work counts as one more in a row, whatever its exit
///   status or signal, and however long the process lived. A worker has worked when a batch of its
///   is acknowledged, a server when it has applied an update, and an actor of the program when it
///   has run for 1 s. A coordinator has worked when a batch is done under its lead, or when it has
///   led, or waited to lead, for 10 s. An end after work begins a new row. A start that fails
///   counts as an end without work.
/// * A crash is any end but by SIGKILL, which comes from outside. It counts for the time `window`,
///   also after work.
///
/// No end counts that the launcher or the coordinator brings about: by --kill, because the process
/// hangs, by an eviction, or because another coordinator leads. But a process that the coordinator
/// sends away six times in a row, each time in its first 2 s, is not started again. Nothing counts
/// after the job has ended, or for a process that leaves it.
struct supervision {
  /// Ends without work in a row, or crashes within `window`, after which `then` happens; 1 .. 1000.
  int crashes_max = 6;
  std::chrono::seconds window{120}; ///< 1 s or more.
  outcome then = outcome::fail_job;
};

} // namespace troupe
