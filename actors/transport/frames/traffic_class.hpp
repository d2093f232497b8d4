// Which messages go first where a link is busy.
#pragma once

#include "serialization/messages.hpp"

#include <cstddef>
#include <cstdint>

namespace troupe {

/// The highest first. Numbers are wire format.
enum class traffic_class : std::uint8_t {
  control = 0, ///< Reports, orders, what opens and ends a link.
  urgent = 1,  ///< What someone waits for: replies, and pulls of the latest values.
  bulk = 2,    ///< Everything else. A push and the pulls behind it keep their order.
};
constexpr std::size_t traffic_classes = 3;

/// A list of requests is of the lowest class of its items, so they should be of one.
traffic_class traffic_class_of(const message& what);
traffic_class traffic_class_of(const request& what);

} // namespace troupe
