// Draws the numbers that kernels are tested on: the same with every standard library.
#pragma once

#include "base/splitmix64.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::test {

/// Lengths: zero, below one CPU vector, about one block of CUDA threads, and several blocks.
constexpr std::array<std::size_t, 7> awkward_sizes{0, 1, 3, 255, 256, 257, 4099};

class numbers : public splitmix64 {
public:
  using splitmix64::splitmix64;

  /// Returns a number in [-1, 1).
  float unit() { return static_cast<float>(next() >> 40) * 0x1p-23f - 1.0f; }

  /// Returns a number of random sign; all exponents in [exponent_min, exponent_max) are equally
  /// likely. The default range includes denormals. Squares of numbers up to 2^40, and their sums,
  /// stay finite.
  float extreme(int exponent_min = -149, int exponent_max = 40) {
    const auto range = static_cast<std::uint64_t>(exponent_max - exponent_min);
    return std::ldexp(unit(), exponent_min + static_cast<int>(next() % range));
  }

  std::vector<float> units(std::size_t count) {
    std::vector<float> all(count);
    for (float& x : all)
      x = unit();
    return all;
  }

  std::vector<float> extremes(std::size_t count, int exponent_min = -149, int exponent_max = 40) {
    std::vector<float> all(count);
    for (float& x : all)
      x = extreme(exponent_min, exponent_max);
    return all;
  }
};

} // namespace troupe::test
