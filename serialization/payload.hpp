// Counts the bytes of the values in a message, for limits, queues and statistics.
#pragma once

#include "serialization/messages.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace troupe {

/// Short requests and replies travel together up to this many bytes, less than a link sends at a
/// time, and up to this many items. With more, the two ends would take turns instead of working at
/// the same time.
constexpr std::uint64_t together_bytes_max = std::uint64_t{64} << 10;
constexpr std::size_t together_items_max = 16;

/// The slowest network that deadlines allow for: 8 Mbit/s for all requests of an actor, a gigabit
/// shared by more than a hundred actors. On a slower network, requests are sent again before they
/// have arrived. Lower: a peer that hangs with large requests is noticed later.
constexpr std::uint64_t payload_bytes_per_second_min = 1'000'000;

inline std::chrono::nanoseconds time_for_payload(std::uint64_t bytes) {
  return std::chrono::milliseconds{bytes / (payload_bytes_per_second_min / 1000)};
}

/// Returns the bytes of values in a push or a pull's reply, or that a pull request asks for.
std::uint64_t payload_bytes(const push_request& what);
std::uint64_t payload_bytes(const pull_request& what);
std::uint64_t payload_bytes(const pull_reply& what);
std::uint64_t payload_bytes(const request& what);
std::uint64_t payload_bytes(const log_entry& what);
std::uint64_t payload_bytes(const copy_part& what);

} // namespace troupe
