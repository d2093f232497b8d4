#include "kernels/int8.hpp"

#include "kernels/random_bits.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/int8_cpu.cpp"
#include "hwy/foreach_target.h"

#include "kernels/simd.inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace troupe::kernels::HWY_NAMESPACE {
namespace {

constexpr std::uint32_t infinity_bits = 0x7f800000;
constexpr float levels = 127.0f;
constexpr float top_min = 0x1p-100f; ///< Far from denormals, and 127 / top is far from overflow.
constexpr float scale_max = 0x1.020406p121f; ///< 127 times this is just below 2^128.

/// 2^23 has a last place of 1, so a sum with it is rounded to an integer, which its bits end with.
constexpr float rounder = 0x1.8p23f;

struct block_scale {
  float scale;
  float inverse; ///< 0: the block's integers are zeros.
};

HWY_INLINE block_scale scale_of(const float* x, std::size_t count) {
  std::uint32_t top_bits = 0; // As integers, magnitudes have the order that they have as floats.
  for (std::size_t i = 0; i < count; ++i)
    top_bits = std::max(top_bits, std::bit_cast<std::uint32_t>(x[i]) & 0x7fffffff);
  const float top = std::bit_cast<float>(top_bits);
  if (top_bits >= infinity_bits)
    return {std::numeric_limits<float>::quiet_NaN(), 0.0f};
  if (top < top_min)
    return {0.0f, 0.0f};
  return {std::min(top / levels, scale_max), levels / top};
}

float block_to_nearest(const float* x, std::int8_t* q, std::size_t count) {
  const auto [scale, inverse] = scale_of(x, count);
  if (inverse == 0.0f) {
    std::fill(q, q + count, std::int8_t{0});
    return scale;
  }
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i)
    q[i] = static_cast<std::int8_t>(std::bit_cast<std::uint32_t>(x[i] * inverse + rounder));
  return scale;
}

float block_to_random(const float* x, std::int8_t* q, std::size_t count, std::uint32_t key,
                      std::uint32_t first) {
  const auto [scale, inverse] = scale_of(x, count);
  if (inverse == 0.0f) {
    std::fill(q, q + count, std::int8_t{0});
    return scale;
  }
  constexpr int offset =
    128; // Makes floor() what a conversion does, and has a last place of 2^-16.
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) {
    const auto bits = detail::random_bits(key, first + static_cast<std::uint32_t>(i));
    const float u = static_cast<float>(static_cast<std::int32_t>(bits >> 16)) * 0x1p-16f;
    const float moved = x[i] * inverse + static_cast<float>(offset);
    q[i] = static_cast<std::int8_t>(std::min(static_cast<std::int32_t>(moved + u), 255) - offset);
  }
  return scale;
}

void block_back(const std::int8_t* q, float scale, float* y, std::size_t count) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i)
    y[i] = static_cast<float>(q[i]) * scale;
}

} // namespace
} // namespace troupe::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace troupe::kernels {

namespace {

HWY_EXPORT(block_to_nearest);
HWY_EXPORT(block_to_random);
HWY_EXPORT(block_back);

constexpr std::size_t blocks_of(std::size_t count) { return (count + int8_block - 1) / int8_block; }

/// Calls body(block, first, count) for each block.
template <class Body>
void for_each_block(std::size_t count, Body body) {
  for (std::size_t block = 0; block < blocks_of(count); ++block)
    body(block, block * int8_block, std::min(int8_block, count - block * int8_block));
}

} // namespace

void to_int8(std::span<const float> x, std::span<std::int8_t> q, std::span<float> scales) {
  assert(q.size() == x.size() && scales.size() == blocks_of(x.size()));
  for_each_block(x.size(), [&](std::size_t block, std::size_t first, std::size_t count) {
    scales[block] =
      HWY_DYNAMIC_DISPATCH(block_to_nearest)(x.data() + first, q.data() + first, count);
  });
}

void to_int8_stochastic(std::span<const float> x, std::uint64_t seed, std::span<std::int8_t> q,
                        std::span<float> scales) {
  assert(q.size() == x.size() && scales.size() == blocks_of(x.size()));
  const auto key = detail::random_key(seed);
  for_each_block(x.size(), [&](std::size_t block, std::size_t first, std::size_t count) {
    scales[block] = HWY_DYNAMIC_DISPATCH(block_to_random)(x.data() + first, q.data() + first, count,
                                                          key, static_cast<std::uint32_t>(first));
  });
}

void from_int8(std::span<const std::int8_t> q, std::span<const float> scales, std::span<float> y) {
  assert(q.size() == y.size() && scales.size() == blocks_of(y.size()));
  for_each_block(y.size(), [&](std::size_t block, std::size_t first, std::size_t count) {
    HWY_DYNAMIC_DISPATCH(block_back)(q.data() + first, scales[block], y.data() + first, count);
  });
}

} // namespace troupe::kernels

#endif
