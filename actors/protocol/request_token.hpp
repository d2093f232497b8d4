// How the caller of a shard names its requests: values and replies stay with the caller.
#pragma once

#include "serialization/ids.hpp"

#include <cstdint>

namespace troupe {

/// The caller's name of an open request. Never used twice.
using request_token = id<struct request_tag, std::uint64_t>;

} // namespace troupe
