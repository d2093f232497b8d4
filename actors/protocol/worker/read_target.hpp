// Which replicas of a chain are asked for values.
#pragma once

#include <cstdint>

namespace troupe {

enum class read_target : std::uint8_t {
  head, ///< One request brings a push and the values for the next batch; others where it fails.
  any,  ///< All in turn, spread over workers and chains; a push and a pull are two requests.
};

} // namespace troupe
