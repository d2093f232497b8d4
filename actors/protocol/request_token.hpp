// Defines the names that a shard's caller gives its requests. Values and replies stay with the
// caller.
#pragma once

#include "serialization/ids.hpp"

#include <cstdint>

namespace troupe {

/// Names an open request of the caller. Never used twice.
using request_token = id<struct request_tag, std::uint64_t>;

} // namespace troupe
