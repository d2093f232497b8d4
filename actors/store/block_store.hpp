// The values of a server's partitions: ref-counted blocks, replaced and never written in place, so
// that a pull, a checkpoint or a slow reader just holds them.
#pragma once

#include "actors/store/shard.hpp"
#include "serialization/buffer.hpp"
#include "serialization/layout.hpp"
#include "serialization/messages.hpp"
#include "storage/checkpoint.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe {

/// Invariants:
/// (1) a published block is never written to; a step publishes all its new blocks or none.
/// (2) for a bsp table the block before the last step is kept too.
class block_store {
public:
  /// Fresh partitions, filled by the tables' initialisers: a function of (job seed, table name,
  /// element), the same on any number of servers.
  block_store(const job_spec& job, const std::vector<partition_id>& partitions,
              std::shared_ptr<buffer_pool> pool);
  /// From a checkpoint.
  block_store(const job_spec& job, const std::vector<storage::partition_image>& partitions,
              std::shared_ptr<buffer_pool> pool);

  /// Checks that each piece lies within one block of a partition that is here, and brings as many
  /// values as it says. Errors: shape_mismatch, not_ready (partition elsewhere).
  result<void> check(const std::vector<piece>& pieces) const;
  result<void> check(const std::vector<range>& ranges) const;

  /// First NaN or infinity: the text names table and key (element). For bsp slots, on arrival.
  result<void> check_finite(const update& push) const;

  /// Carries out an apply_effect with the updates of its pushes, in its order. Clipping by norm uses
  /// each update's gradient_norm. Errors: non_finite (names worker, table, key); nothing has changed.
  result<void> apply(const apply_effect& effect, std::span<const update* const> pushes);

  /// The values of `ranges`, one piece for each block touched; no copy.
  std::vector<piece> read(const std::vector<range>& ranges,
                          const std::vector<table_id>& previous) const;

  /// Pins everything for a checkpoint; `partitions` from shard::partitions(). No copy.
  std::vector<storage::partition_image> pin(const std::vector<shard_partition>& partitions) const;

  std::uint64_t size_bytes() const; ///< Values and optimiser state, without pinned old blocks.

  // The members are the implementer's to choose.
};

} // namespace troupe
