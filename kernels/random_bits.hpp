// Computes pseudo-random bits as a function of (key, index) for kernels. So an element's draw does
// not depend on other draws or on the vector width of the machine.
#pragma once

#include <cstdint>

namespace troupe::kernels::detail {

/// Turns a seed into a key of random_bits(). The finaliser of splitmix64 (Steele, Lea, Flood 2014).
constexpr std::uint32_t random_key(std::uint64_t seed) {
  seed += 0x9e3779b97f4a7c15;
  seed = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9;
  seed = (seed ^ (seed >> 27)) * 0x94d049bb133111eb;
  return static_cast<std::uint32_t>(seed ^ (seed >> 31));
}

/// Applies the finaliser of MurmurHash3 (Appleby) to a Weyl sequence that begins at the key.
constexpr std::uint32_t random_bits(std::uint32_t key, std::uint32_t index) {
  std::uint32_t x = key + index * 0x9e3779b1;
  x = (x ^ (x >> 16)) * 0x85ebca6b;
  x = (x ^ (x >> 13)) * 0xc2b2ae35;
  return x ^ (x >> 16);
}

} // namespace troupe::kernels::detail
