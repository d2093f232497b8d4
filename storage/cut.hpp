// What a replica keeps of one moment: its part of a checkpoint, or for itself.
#pragma once

#include "serialization/ids.hpp"
#include "serialization/snapshot.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace troupe::storage {

/// A cut that stays with the server: what it begins with when it starts again (kept_state.hpp).
struct base_id {
  std::uint64_t sequence = 0; ///< Grows with each; its log has the same number.
  generation_id history;      ///< Of the job.
  generation_id generation;   ///< Of the chain.
  bool recovered = false;     ///< That began with all that the chain had acknowledged before.

  bool operator==(const base_id&) const = default;
};

/// All partitions of a chain, at one moment.
struct cut {
  std::uint64_t checkpoint = 0; ///< 0: of none.
  chain_id chain;
  std::vector<partition_image> partitions;
  std::optional<base_id> base = {}; ///< None: the server keeps nothing of it for itself.
  std::uint64_t bases_from = 0;     ///< With `base`: bases and logs of smaller numbers can go.
};

} // namespace troupe::storage
