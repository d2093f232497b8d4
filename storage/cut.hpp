// The state of a chain at one moment, for a checkpoint or for the server's local snapshot.
#pragma once

#include "serialization/ids.hpp"
#include "serialization/snapshot.hpp"
#include "serialization/stored_state.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace troupe::storage {

/// All partitions of a chain at one moment.
struct cut {
  std::uint64_t checkpoint = 0; ///< 0: belongs to no checkpoint.
  shard_id shard;
  std::vector<partition_image> partitions;
  std::optional<base_id> base = {}; ///< Nullopt: the server keeps no local snapshot of it.
  std::uint64_t bases_from = 0;     ///< With `base`: bases and logs of smaller numbers can be
                                    ///< removed.
};

} // namespace troupe::storage
