// Compares the checksums that replicas of a shard report (--verify-replicas). A plain state
// machine, part of the coordinator.
#pragma once

#include "base/error.hpp"
#include "serialization/messages.hpp"

#include <cstdint>
#include <map>

namespace troupe {

/// Within a generation, a version names one state of a shard. So two replicas that report different
/// checksums for it applied the same entries with different results.
class replica_checks {
public:
  /// Takes the status of one replica. Errors: contract_broken (another replica had other values;
  /// the text names shard, version and both replicas).
  result<void> hear(const member_id& from, const replica_status& what);

private:
  struct checked {
    std::uint32_t crc32c = 0;
    std::uint32_t server = 0; ///< The first one that reported it.
  };
  struct chain_state {
    generation_id generation;
    std::map<std::uint64_t, checked> versions; ///< The newest ones.
  };

  std::map<shard_id, chain_state> chains_;
};

} // namespace troupe
