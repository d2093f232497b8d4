// Computes the scale of a block, and one number of int8.hpp.
#pragma once

#include "kernels/host_device.hpp"
#include "kernels/random_bits.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

namespace troupe::kernels::detail {

struct block_scale {
  float scale;
  float inverse; ///< 0: the block's integers are zeros.
};

/// Returns the magnitude as an integer, which has the same order as the float.
TROUPE_HD std::uint32_t magnitude_bits(float x) {
  return std::bit_cast<std::uint32_t>(x) & 0x7fffffff;
}

/// `top_bits`: the largest magnitude of the block.
TROUPE_HD block_scale scale_of(std::uint32_t top_bits) {
  constexpr std::uint32_t infinity_bits = 0x7f800000;
  constexpr float levels = 127.0f;
  constexpr float top_min = 0x1p-100f; // Far from denormals, and 127 / top is far from overflow.
  constexpr float scale_max = 0x1.020406p121f; // 127 times this is just below 2^128.
  const float top = std::bit_cast<float>(top_bits);
  if (top_bits >= infinity_bits)
    return {std::numeric_limits<float>::quiet_NaN(), 0.0f};
  if (top < top_min)
    return {0.0f, 0.0f};
  const float scale = top / levels;
  return {scale < scale_max ? scale : scale_max, levels / top};
}

TROUPE_HD std::int8_t nearest_int8(float x, float inverse) {
  // The last place of 2^23 is 1, so a sum with it is rounded to an integer, its low bits.
  constexpr float rounder = 0x1.8p23f;
  return static_cast<std::int8_t>(std::bit_cast<std::uint32_t>(x * inverse + rounder));
}

TROUPE_HD std::int8_t random_int8(float x, float inverse, std::uint32_t key, std::uint32_t index) {
  constexpr int offset = 128; // Makes the conversion a floor(); its last place is 2^-16.
  const std::uint32_t bits = random_bits(key, index);
  const float u = static_cast<float>(static_cast<std::int32_t>(bits >> 16)) * 0x1p-16f;
  const float moved = x * inverse + static_cast<float>(offset);
  return static_cast<std::int8_t>(std::min(static_cast<std::int32_t>(moved + u), 255) - offset);
}

} // namespace troupe::kernels::detail
