// Computes pseudo-random bits as a function of (key, index) for kernels. So an element's draw does
// not depend on other draws or on the vector width of the machine.
#pragma once

#include "base/splitmix64.hpp"

#include <cstdint>

namespace troupe::kernels::detail {

/// Turns a seed into a key of random_bits().
constexpr std::uint32_t random_key(std::uint64_t seed) {
  return static_cast<std::uint32_t>(splitmix64{seed}.next());
}

/// Applies the finaliser of MurmurHash3 (Appleby) to a Weyl sequence that begins at the key.
constexpr std::uint32_t random_bits(std::uint32_t key, std::uint32_t index) {
  std::uint32_t x = key + index * 0x9e3779b1;
  x = (x ^ (x >> 16)) * 0x85ebca6b;
  x = (x ^ (x >> 13)) * 0xc2b2ae35;
  return x ^ (x >> 16);
}

} // namespace troupe::kernels::detail
