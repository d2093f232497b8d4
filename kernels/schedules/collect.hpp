// Cuts an all-reduce to its first part, which completes each chunk's sum on some device. It moves
// half of the bytes, for users that need the sum only once.
#pragma once

#include "kernels/schedules/schedule.hpp"

#include <cstdint>
#include <vector>

namespace troupe::kernels {

struct collection {
  schedule plan;                    ///< The needed steps of the all-reduce, in their order.
  std::vector<std::uint32_t> homes; ///< For each chunk: the first device with its sum.
};

/// Requires: an all-reduce in which fault_of() finds no fault.
collection collect(const schedule& all_reduce);

} // namespace troupe::kernels
