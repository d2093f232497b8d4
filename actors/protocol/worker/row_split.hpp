// Rows of a request, cut for the chains that hold them, and the answers put together again.
#pragma once

#include "base/buffer.hpp"
#include "serialization/ids.hpp"
#include "serialization/rows.hpp"

#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace troupe {

/// Where one chain holds all partitions nothing is copied: its part is the whole.
class row_split {
public:
  row_split() = default;
  /// `chain_of`: one for each partition; their number is a power of two, or 0.
  explicit row_split(const std::vector<chain_id>& chain_of);

  /// Each chain's rows, in the order of the whole; none for a server that has none of them.
  /// values null: keys alone. Requires: a map of partitions.
  std::vector<std::pair<chain_id, row_piece>> split(const row_piece& whole) const;

  /// Copies what one chain answered to where it belongs. `asked`, `answer`: lists of rows of one
  /// chain, each a part of one list of `all_asked` of the same table, in the same order.
  /// `all_answers`: one for each of `all_asked`; their values are made when the first part comes.
  void join(std::span<const row_keys> asked, std::span<const row_piece> answer,
            std::span<const row_keys> all_asked, std::span<row_piece> all_answers) const;

private:
  void put(const row_keys& part, const float_ptr& values, const row_keys& whole,
           row_piece& into) const;

  std::vector<chain_id> chains_;            ///< Each once.
  std::vector<std::uint32_t> of_partition_; ///< Position in chains_.
  std::shared_ptr<buffer_pool> pool_ = std::make_shared<buffer_pool>();
};

} // namespace troupe
