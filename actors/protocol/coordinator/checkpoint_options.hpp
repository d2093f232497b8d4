// Defines when checkpoints are made and how many are kept.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace troupe {

struct checkpoint_options {
  std::chrono::milliseconds interval{2000}; ///< End of one to cut of the next; 0: not by time.
  std::uint64_t clocks = 0;                 ///< Batches per worker slot between cuts; 0: by time.
  std::size_t keep = 3;                     ///< Committed checkpoints to keep. At least 1.

  bool operator==(const checkpoint_options&) const = default;
};

} // namespace troupe
