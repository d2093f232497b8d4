// What a replica keeps of one moment, to be written as its part of a checkpoint.
#pragma once

#include "serialization/ids.hpp"
#include "serialization/image.hpp"

#include <cstdint>
#include <vector>

namespace troupe::storage {

/// All partitions of a chain, at one moment.
struct cut {
  std::uint64_t checkpoint = 0;
  chain_id chain;
  std::vector<partition_image> partitions;
};

} // namespace troupe::storage
