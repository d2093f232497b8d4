// Splits the rows of a request over the shards that hold them, and joins the replies.
#pragma once

#include "base/buffer.hpp"
#include "serialization/ids.hpp"
#include "serialization/rows.hpp"

#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace troupe {

/// If one shard holds all partitions, its part is the whole, without a copy.
class row_split {
public:
  row_split() = default;
  /// `shard_of`: the shard of each partition; their number is a power of two, or 0.
  explicit row_split(const std::vector<shard_id>& shard_of);

  /// Returns each shard's rows, in the order of the whole; shards without rows are left out. values
  /// null: keys alone. Requires: a map of partitions.
  std::vector<std::pair<shard_id, row_piece>> split(const row_piece& whole) const;

  /// Copies the reply of one shard to its places. `asked`, `answer`: lists of rows of one shard,
  /// each a part of one list of `all_asked` of the same table, in the same order. `all_answers`:
  /// one for each of `all_asked`; their values are made when the first part comes.
  void join(std::span<const row_keys> asked, std::span<const row_piece> answer,
            std::span<const row_keys> all_asked, std::span<row_piece> all_answers) const;

private:
  void put(const row_keys& part, const float_ptr& values, const row_keys& whole,
           row_piece& into) const;

  std::vector<shard_id> chains_;            ///< Each shard once.
  std::vector<std::uint32_t> of_partition_; ///< Position in chains_.
  std::shared_ptr<buffer_pool> pool_ = std::make_shared<buffer_pool>();
};

} // namespace troupe
