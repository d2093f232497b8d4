// What a replica keeps of one moment: its part of a checkpoint, or for itself.
#pragma once

#include "serialization/ids.hpp"
#include "serialization/snapshot.hpp"
#include "serialization/stored_state.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace troupe::storage {

/// All partitions of a chain, at one moment.
struct cut {
  std::uint64_t checkpoint = 0; ///< 0: of none.
  chain_id chain;
  std::vector<partition_image> partitions;
  std::optional<base_id> base = {}; ///< None: the server keeps nothing of it for itself.
  std::uint64_t bases_from = 0;     ///< With `base`: bases and logs of smaller numbers can go.
};

} // namespace troupe::storage
