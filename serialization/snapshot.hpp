// A partition's content at one moment: blocks, rows and applied batches, pinned and not copied.
// Checkpoints and copies for other replicas are made of it.
#pragma once

#include "base/buffer.hpp"
#include "serialization/batch_set.hpp"
#include "serialization/ids.hpp"
#include "serialization/rows.hpp"

#include <cstdint>
#include <vector>

namespace troupe {

/// One block at a cut. The handles pin its memory; it is not copied. With an own store there is one
/// block, of table 0: `values` has the keeper's bytes, and `steps` is their number.
struct block_image {
  table_id table;
  std::uint64_t block = 0;
  std::uint64_t version = 0; ///< Changes whenever the content does.
  std::uint64_t steps = 0;   ///< Optimiser steps taken on this block.
  std::uint64_t count = 0;   ///< Elements of `values`.
  float_ptr values;
  std::uint64_t state_count = 0; ///< Elements of `state`; 0 for sgd.
  float_ptr state = {};          ///< Optimiser state.
};

/// Some rows of a sparse table at a cut, pinned like a block. A slab holds a run of rows in the
/// order of their creation.
struct slab_image {
  table_id table;
  std::uint64_t slab = 0;       ///< Position among the table's slabs in this partition.
  std::uint64_t version = 0;    ///< Changes whenever the content does.
  std::uint64_t count = 0;      ///< Number of rows: slab_rows() of the table; fewer in the last
                                ///< slab.
  key_ptr keys;                 ///< u64[count]
  std::uint64_t row_floats = 0; ///< Floats of a row: values, then optimiser state.
  float_ptr rows;               ///< f32[count * row_floats]
  key_ptr steps;                ///< u64[count]: optimiser steps of each row; null except for adam.
};

/// One partition at a cut.
struct partition_image {
  partition_id partition;
  std::uint64_t version = 0;      ///< Number of updates applied.
  std::vector<batch_set> applied; ///< Batches applied, one set for each table of the job.
  std::vector<block_image> blocks = {};
  std::vector<slab_image> slabs = {}; ///< Ordered by table and slab, complete.
};

} // namespace troupe
