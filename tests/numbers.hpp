// Numbers to test kernels on: the same with every standard library, and of all sizes.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

namespace troupe::test {

/// Nothing, less than a block, about a block of CUDA threads, and more than one.
constexpr std::array<std::size_t, 8> awkward_sizes{0, 1, 3, 255, 256, 257, 4099, 100'003};

class numbers {
public:
  explicit numbers(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() { // splitmix64
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  /// In [-1, 1).
  float unit() { return static_cast<float>(next() >> 40) * 0x1p-23f - 1.0f; }

  /// A sign and exponent of their own for each, from denormals up to 2^40.
  float extreme() { return std::ldexp(unit(), -149 + static_cast<int>(next() % 189)); }

  std::vector<float> units(std::size_t count) {
    std::vector<float> all(count);
    for (float& x : all)
      x = unit();
    return all;
  }

  std::vector<float> extremes(std::size_t count) {
    std::vector<float> all(count);
    for (float& x : all)
      x = extreme();
    return all;
  }

private:
  std::uint64_t state_;
};

} // namespace troupe::test
