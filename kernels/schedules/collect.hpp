// The first part of an all-reduce: up to where each chunk's sum is complete on some device. For
// whoever takes the sum from there and needs no copies of it: half of the bytes.
#pragma once

#include "kernels/schedules/schedule.hpp"

#include <cstdint>
#include <vector>

namespace troupe::kernels {

struct collection {
  schedule plan; ///< Of the all-reduce's steps those that are needed, in their order.
  std::vector<std::uint32_t> homes; ///< Of each chunk: the device that has its sum first.
};

/// Requires: an all-reduce, no fault_of() it.
collection collect(const schedule& all_reduce);

} // namespace troupe::kernels
