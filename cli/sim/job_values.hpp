// Holds the values of a simulated replica: the applied batches, and numbers that tell whether each
// batch came once, with its gradient, and in which order.
#pragma once

#include "actors/protocol/server/applied_batches.hpp"
#include "actors/protocol/server/replica.hpp"
#include "serialization/batch_set.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace troupe::sim {

/// Names a batch in one table. In a job of one table it is the batch.
inline batch_id mark_of(const job_spec& job, batch_id batch, table_id table) {
  return {batch.value * job.tables.size() + table.value};
}

/// Returns a mark for each batch of a push in each of its tables.
std::vector<batch_id> marks_of(const job_spec& job, const push_request& push);

/// Returns the gradient of a mark: a number that floats add up exactly.
inline float gradient_of(batch_id mark) {
  return static_cast<float>(mark.value * 7919 % 1'000'003 + 1);
}

struct value_image {
  batch_set applied;                       ///< Marks.
  std::uint64_t sum = 0;                   ///< Sum of gradients.
  std::uint64_t digest = 0;                ///< Digest of the marks in their order.
  std::vector<shard_partition> partitions; ///< Only in images.

  /// Takes the step of an entry. Throws violation.
  void apply(const job_spec& job, const std::vector<std::shared_ptr<const push_request>>& pushes);
  /// Returns true if the sum is that of the marks.
  bool adds_up() const;
  std::uint64_t version() const;
  bool operator==(const value_image& other) const {
    return applied == other.applied && sum == other.sum && digest == other.digest;
  }
};

/// Returns one push of all batches of `pushes`.
std::shared_ptr<const push_request>
sum_of(std::span<const std::shared_ptr<const push_request>> pushes);

/// Applies the steps of a log to a base, as replay_log() does.
value_image replayed(const job_spec& job, value_image base, const std::vector<log_entry>& log);

} // namespace troupe::sim
