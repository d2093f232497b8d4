// What a server keeps of one moment: its blocks and marks, pinned and not copied.
#pragma once

#include "serialization/batch_set.hpp"
#include "serialization/buffer.hpp"
#include "serialization/ids.hpp"

#include <cstdint>
#include <vector>

namespace troupe::storage {

/// One block at a cut. The memory is pinned by the handles, not copied.
struct block_image {
  table_id table;
  std::uint64_t block = 0;
  std::uint64_t version = 0; ///< Changes whenever the content does.
  std::uint64_t steps = 0;   ///< Optimiser steps taken on this block.
  std::uint64_t count = 0;   ///< Elements of `values`.
  float_ptr values;
  std::uint64_t state_count = 0; ///< Elements of `state`; 0 for sgd.
  float_ptr state;               ///< Optimiser state.
};

/// One partition at a cut.
struct partition_image {
  partition_id partition;
  std::uint64_t version = 0;    ///< Updates applied.
  std::vector<batch_set> marks; ///< Batches applied, one set for each table of the job.
  std::vector<block_image> blocks;
};

/// Everything that a server owns, at one moment.
struct cut {
  std::uint64_t checkpoint = 0;
  server_id server;
  std::vector<partition_image> partitions;
};

} // namespace troupe::storage
