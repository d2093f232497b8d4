// Converts one number of half.hpp without branches, so that loops over it become vector code.
#pragma once

#include "kernels/host_device.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace troupe::kernels::detail {

constexpr std::uint32_t float_sign = 0x80000000, float_infinity = 0x7f800000;

/// Returns `a` if `first`, else `b`, by a mask of all ones or all zeros.
constexpr std::uint32_t chosen(bool first, std::uint32_t a, std::uint32_t b) {
  const std::uint32_t mask = -static_cast<std::uint32_t>(first);
  return (a & mask) | (b & ~mask);
}

// A result's bits are shifted to their place last, so that compilers keep to vectors of 32 bits
// before that.

TROUPE_HD std::uint16_t fp16_of(float x) {
  constexpr int dropped = 13; // Bits of the fraction.
  constexpr std::uint32_t infinity = 0x7c00 << dropped, quiet = 0x7e00 << dropped;
  constexpr std::uint32_t largest = 0x7bff << dropped;
  constexpr std::uint32_t normal_min = 0x38800000;      // 2^-14
  constexpr std::uint32_t exponents_apart = 0x38000000; // (127 - 15) << 23
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const auto magnitude = bits & ~float_sign;
  const auto rounded = magnitude + 0xfff + ((magnitude >> dropped) & 1) - exponents_apart;
  const auto normal = std::min(rounded, largest);
  // The last place of 0.5 is that of fp16's denormals, so the sum rounds to it.
  const float shifted = std::bit_cast<float>(std::min(magnitude, normal_min)) + 0.5f;
  const auto denormal = std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(0.5f);
  auto result = chosen(magnitude < normal_min, denormal << dropped, normal);
  result = chosen(magnitude < float_infinity, result, infinity);
  result = chosen(magnitude > float_infinity, quiet, result);
  return static_cast<std::uint16_t>((result >> dropped) | ((bits & float_sign) >> 16));
}

TROUPE_HD float float_of_fp16(std::uint16_t x) {
  constexpr std::uint32_t exponents_apart = 0x38000000; // (127 - 15) << 23
  const std::uint32_t magnitude = x & 0x7fffu;
  const std::uint32_t normal = (magnitude << 13) + exponents_apart;
  const std::uint32_t special = float_infinity | ((magnitude & 0x3ff) << 13);
  const auto denormal = // Exact: 10 bits; 2^-24 is a normal float.
    std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(magnitude))
                                 * 0x1p-24f);
  auto result = chosen(magnitude < 0x400, denormal, normal);
  result = chosen(magnitude >= 0x7c00, special, result);
  result = chosen(magnitude > 0x7c00, result | 0x400000, result);
  return std::bit_cast<float>(result | (x & 0x8000u) << 16);
}

TROUPE_HD std::uint16_t bf16_of(float x) {
  // Signed, because few CPUs compare vectors of unsigned integers.
  constexpr std::int32_t infinity = float_infinity, quiet = 0x7fc00000, largest = 0x7f7fffff;
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const auto magnitude = bits & ~float_sign;
  const auto size = static_cast<std::int32_t>(magnitude);
  const auto rounded = static_cast<std::int32_t>(magnitude + 0x7fff + ((magnitude >> 16) & 1));
  auto result = size < infinity ? std::min(rounded, largest) : infinity;
  result = size > infinity ? quiet : result;
  return static_cast<std::uint16_t>((static_cast<std::uint32_t>(result) | (bits & float_sign))
                                    >> 16);
}

TROUPE_HD float float_of_bf16(std::uint16_t x) {
  const std::uint32_t bits = std::uint32_t{x} << 16;
  const bool is_nan = (bits & ~float_sign) > float_infinity;
  return std::bit_cast<float>(bits | chosen(is_nan, 0x400000, 0));
}

} // namespace troupe::kernels::detail
