#include "kernels/onebit.hpp"

#include "kernels/onebit.inl.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/onebit_cpu.cpp"
#include "hwy/foreach_target.h"

#include "kernels/simd.inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace troupe::kernels::HWY_NAMESPACE {
namespace {

/// Adds x to v in a block and writes v's bits to `signs`, one byte each. Returns the number of
/// ones.
std::uint32_t add_and_sign(const float* x, float* v, std::uint8_t* signs, std::size_t count) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i)
    v[i] += x[i];
  std::uint32_t above = 0;
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t bit = detail::bit_of(v[i]);
    signs[i] = static_cast<std::uint8_t>(bit);
    above += bit;
  }
  return above;
}

/// Sums the elements of v that are below zero, or the others; a zero adds 0 to either.
double sum_of(const float* v, std::size_t count, bool below) {
  return sum_in_lanes(count, [=](auto d, std::size_t i) HWY_ATTR {
    const auto each = load_doubles(d, v + i);
    const auto is_below = hn::Lt(each, hn::Zero(d));
    return below ? hn::IfThenElseZero(is_below, each) : hn::IfThenZeroElse(is_below, each);
  });
}

/// Packs eight bytes of 0 or 1 into eight bits.
std::uint8_t together(const std::uint8_t* signs) {
  std::uint64_t eight = 0;
  std::memcpy(&eight, signs, sizeof eight);
  return static_cast<std::uint8_t>((eight * 0x0102040810204080) >> 56);
}

/// Unpacks eight bits into bytes of 0 or 1.
void apart(std::uint8_t bits, std::uint8_t* signs) {
  std::uint64_t eight = std::uint64_t{bits} * 0x0101010101010101 & 0x8040201008040201;
  eight = ((eight + 0x7f7f7f7f7f7f7f7f) >> 7) & 0x0101010101010101;
  std::memcpy(signs, &eight, sizeof eight);
}

void block_to_bits(const float* x, float* v, std::size_t count, std::uint8_t* bits, float* means) {
  std::uint8_t signs[onebit_block];
  const std::size_t above = add_and_sign(x, v, signs, count);
  std::fill(signs + count, signs + (count + 7) / 8 * 8, std::uint8_t{0});
  for (std::size_t i = 0; i < count; i += 8)
    bits[i / 8] = together(signs + i);
  const float mean_below = detail::mean(sum_of(v, count, true), count - above);
  const float mean_above = detail::mean(sum_of(v, count, false), above);
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i)
    v[i] -= detail::bit_of(v[i]) != 0 ? mean_above : mean_below;
  means[0] = mean_below;
  means[1] = mean_above;
}

void block_from_bits(const std::uint8_t* bits, const float* means, float* y, std::size_t count) {
  std::uint8_t signs[onebit_block];
  for (std::size_t i = 0; i < count; i += 8)
    apart(bits[i / 8], signs + i);
  const float below = means[0], above = means[1];
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i)
    y[i] = signs[i] != 0 ? above : below;
}

} // namespace
} // namespace troupe::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace troupe::kernels {

namespace {

HWY_EXPORT(block_to_bits);
HWY_EXPORT(block_from_bits);

/// Calls body(block, first, count) for each block.
template <class Body>
void for_each_block(std::size_t count, Body body) {
  for (std::size_t block = 0; block * onebit_block < count; ++block)
    body(block, block * onebit_block, std::min(onebit_block, count - block * onebit_block));
}

} // namespace

void to_onebit(std::span<const float> x, std::span<float> residual, std::span<std::uint8_t> bits,
               std::span<float> means) {
  static_assert(std::endian::native == std::endian::little && onebit_block % 8 == 0);
  assert(residual.size() == x.size() && bits.size() == (x.size() + 7) / 8);
  assert(means.size() == 2 * ((x.size() + onebit_block - 1) / onebit_block));
  for_each_block(x.size(), [&](std::size_t block, std::size_t first, std::size_t count) {
    HWY_DYNAMIC_DISPATCH(block_to_bits)
    (x.data() + first, residual.data() + first, count, bits.data() + first / 8,
     means.data() + 2 * block);
  });
}

void from_onebit(std::span<const std::uint8_t> bits, std::span<const float> means,
                 std::span<float> y) {
  assert(bits.size() == (y.size() + 7) / 8);
  assert(means.size() == 2 * ((y.size() + onebit_block - 1) / onebit_block));
  for_each_block(y.size(), [&](std::size_t block, std::size_t first, std::size_t count) {
    HWY_DYNAMIC_DISPATCH(block_from_bits)
    (bits.data() + first / 8, means.data() + 2 * block, y.data() + first, count);
  });
}

} // namespace troupe::kernels

#endif
