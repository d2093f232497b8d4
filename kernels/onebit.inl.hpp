// Computes the parts of onebit.hpp that CPU and GPU share: a number's bit, a block's mean.
#pragma once

#include "kernels/host_device.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>

namespace troupe::kernels::detail {

TROUPE_HD std::uint32_t bit_of(float v) { return ~std::bit_cast<std::uint32_t>(v) >> 31; }

TROUPE_HD float mean(double sum, std::size_t count) {
  return count == 0 ? 0.0f : static_cast<float>(sum / static_cast<double>(count));
}

} // namespace troupe::kernels::detail
