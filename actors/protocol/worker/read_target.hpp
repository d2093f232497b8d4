// Names the replicas that answer pulls.
#pragma once

#include <cstdint>

namespace troupe {

/// The replicas of a shard that a router asks for values.
enum class read_target : std::uint8_t {
  head, ///< One request carries a push and the next pull; other replicas only after a failure.
  any,  ///< All, spread over workers and shards; a push and a pull are two requests.
};

} // namespace troupe
