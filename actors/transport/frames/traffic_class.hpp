// Ranks messages: on a busy link a higher class goes first.
#pragma once

#include "serialization/messages.hpp"

#include <cstddef>
#include <cstdint>

namespace troupe {

/// Highest first. The numbers are wire format.
enum class traffic_class : std::uint8_t {
  control = 0, ///< Status, desired state, messages that open or end a link.
  urgent = 1,  ///< A process waits for these: replies, pulls of the latest values, and credit.
  bulk = 2,    ///< All others. A push and the pulls behind it keep their order, parcels too.
};
constexpr std::size_t traffic_classes = 3;

/// Returns the lowest class of a list's requests, so they should be of one class.
traffic_class traffic_class_of(const message& what);
traffic_class traffic_class_of(const request& what);

} // namespace troupe
