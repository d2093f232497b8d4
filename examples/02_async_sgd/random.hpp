// Draws the example's random numbers by splitmix64, which are the same on every machine.
#pragma once

#include <cstdint>

namespace async_sgd {

class splitmix64 {
public:
  explicit splitmix64(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// Returns a number in [-1, 1) from 24 random bits, as many as a float holds.
  float symmetric() { return static_cast<float>(next() >> 40) * 0x1p-23f - 1.0f; }

private:
  std::uint64_t state_;
};

} // namespace async_sgd
