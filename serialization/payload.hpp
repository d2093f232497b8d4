// Counts the bytes of the values in a message, for limits, queues and statistics.
#pragma once

#include "serialization/messages.hpp"

#include <cstdint>

namespace troupe {

/// Returns the bytes of values in a push or a pull's reply, or that a pull request asks for.
std::uint64_t payload_bytes(const push_request& what);
std::uint64_t payload_bytes(const pull_request& what);
std::uint64_t payload_bytes(const pull_reply& what);
std::uint64_t payload_bytes(const request& what);
std::uint64_t payload_bytes(const log_entry& what);
std::uint64_t payload_bytes(const copy_part& what);

} // namespace troupe
