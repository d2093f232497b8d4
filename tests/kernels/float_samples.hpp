// Floats of all magnitudes for tests of kernels, the same from the same seed everywhere.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace troupe::kernels::test {

constexpr std::array<std::size_t, 7> sizes{0, 1, 3, 255, 256, 257, 4099};

/// Exponents from exponent_min to below exponent_max are equally likely.
inline std::vector<float> floats(std::size_t count, int exponent_min, int exponent_max,
                                 std::uint32_t seed) {
  std::mt19937 random{seed};
  const auto range = static_cast<std::uint32_t>(exponent_max - exponent_min);
  std::vector<float> made(count);
  for (float& x : made) {
    const float unit = static_cast<float>(random() >> 8) * 0x1p-23f - 1.0f;
    x = std::ldexp(unit, exponent_min + static_cast<int>(random() % range));
  }
  return made;
}

} // namespace troupe::kernels::test
