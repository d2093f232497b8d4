#include "kernels/int8.hpp"

#include "kernels/int8.inl.hpp"

#include <algorithm>
#include <cassert>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/int8_cpu.cpp"
#include "hwy/foreach_target.h"

#include "kernels/simd.inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace troupe::kernels::HWY_NAMESPACE {
namespace {

HWY_INLINE detail::block_scale scale_of(const float* x, std::size_t count) {
  std::uint32_t top_bits = 0;
  for (std::size_t i = 0; i < count; ++i)
    top_bits = std::max(top_bits, detail::magnitude_bits(x[i]));
  return detail::scale_of(top_bits);
}

float block_to_nearest(const float* x, std::int8_t* q, std::size_t count) {
  const auto [scale, inverse] = scale_of(x, count);
  if (inverse == 0.0f) {
    std::fill(q, q + count, std::int8_t{0});
    return scale;
  }
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i)
    q[i] = detail::nearest_int8(x[i], inverse);
  return scale;
}

float block_to_random(const float* x, std::int8_t* q, std::size_t count, std::uint32_t key,
                      std::uint32_t first) {
  const auto [scale, inverse] = scale_of(x, count);
  if (inverse == 0.0f) {
    std::fill(q, q + count, std::int8_t{0});
    return scale;
  }
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i)
    q[i] = detail::random_int8(x[i], inverse, key, first + static_cast<std::uint32_t>(i));
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
