// Counts the bytes of the values in a message, for limits, queues and statistics.
#pragma once

#include "serialization/messages.hpp"

#include <cstdint>

namespace troupe {

/// Returns the bytes of the values that a push brings, or that a pull asks for.
std::uint64_t payload_bytes(const update& what);
std::uint64_t payload_bytes(const query& what);
std::uint64_t payload_bytes(const values& what);
std::uint64_t payload_bytes(const request& what);
std::uint64_t payload_bytes(const log_entry& what);
std::uint64_t payload_bytes(const copy_part& what);

} // namespace troupe
