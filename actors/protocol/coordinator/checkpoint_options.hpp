// Defines when checkpoints are made and how many are kept.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace troupe {

/// When checkpoints are cut, and how many are kept. With `interval` and `clocks` at 0, they are cut
/// only at the start and at the end of a job.
struct checkpoint_options {
  /// Time from the end of a checkpoint to the cut of the next one; 0: `clocks` decides.
  std::chrono::milliseconds interval{2000};
  std::uint64_t clocks = 0; ///< Batches of each worker between cuts; 0: `interval` decides.
  std::size_t keep = 3;     ///< Committed checkpoints to keep, 1 .. 1000.

  bool operator==(const checkpoint_options&) const = default;
};

} // namespace troupe
