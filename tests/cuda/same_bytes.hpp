// Compares floats of a device with those of the CPU.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

namespace troupe::test {

/// Returns true if all bits are equal; any NaN equals any other.
inline bool same_bytes(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size())
    return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const bool both_nan = std::isnan(a[i]) && std::isnan(b[i]);
    if (!both_nan && std::bit_cast<std::uint32_t>(a[i]) != std::bit_cast<std::uint32_t>(b[i]))
      return false;
  }
  return true;
}

} // namespace troupe::test
