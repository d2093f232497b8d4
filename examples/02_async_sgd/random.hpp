// Draws the example's random numbers by splitmix64, which are the same on every machine.
#pragma once

#include "base/splitmix64.hpp"

namespace async_sgd {

class splitmix64 : public troupe::splitmix64 {
public:
  using troupe::splitmix64::splitmix64;

  /// In [-1, 1): 24 random bits, as many as a float holds.
  float symmetric() { return static_cast<float>(next() >> 40) * 0x1p-23f - 1.0f; }
};

} // namespace async_sgd
