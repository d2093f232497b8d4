// Records which batches a server has applied, for each table and partition.
#pragma once

#include "serialization/batch_set.hpp"
#include "serialization/ids.hpp"
#include "serialization/snapshot.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace troupe {

/// The initial state of one partition of a shard: fresh, or read from a checkpoint.
struct shard_partition {
  partition_id partition;
  std::uint64_t version = 0;
  std::vector<batch_set> applied; ///< One for each table of the job.
};

std::vector<shard_partition> applied_of(const std::vector<partition_image>& images);

/// Each push is recorded for all partitions of a server, so partitions differ only where their
/// checkpoints differed. Partitions that were equal then share one record.
class applied_batches {
public:
  applied_batches(const std::vector<shard_partition>& partitions, std::size_t tables);

  /// Returns whether every partition has the batch.
  bool contains(table_id table, batch_id batch) const;
  void insert(const std::vector<table_id>& tables, batch_id batch);
  /// Returns those (table, partition) pairs of these tables that have the batch.
  std::vector<std::pair<table_id, partition_id>> pairs(const std::vector<table_id>& tables,
                                                       batch_id batch) const;
  /// Returns the first batch that some partition lacks for one of these tables, at most `end`.
  batch_id floor(const std::vector<table_id>& tables, batch_id end) const;
  /// Returns the batches below `end` that every partition has for all tables.
  batch_set everywhere(batch_id end) const;
  /// Returns the partitions in their initial order, with this version.
  std::vector<shard_partition> partitions(std::uint64_t version) const;
  std::uint64_t version_max() const { return version_max_; }

private:
  struct group {
    std::vector<batch_set> applied; ///< One for each table.
    std::vector<partition_id> partitions;
  };

  std::vector<group> groups_;
  std::vector<std::pair<partition_id, std::size_t>> order_; ///< Partition and its group.
  std::uint64_t version_max_ = 0;
};

} // namespace troupe
