// Makes random numbers that are equal on every machine: splitmix64 (Steele, Lea, Flood 2014).
#pragma once

#include <cstdint>

namespace troupe {

/// 2^64 / the golden ratio, odd: the distance of two states.
constexpr std::uint64_t splitmix64_step = 0x9e3779b97f4a7c15;

/// Returns the number of a state. Differs for any two states.
constexpr std::uint64_t splitmix64_of(std::uint64_t state) {
  state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9;
  state = (state ^ (state >> 27)) * 0x94d049bb133111eb;
  return state ^ (state >> 31);
}

class splitmix64 {
public:
  explicit constexpr splitmix64(std::uint64_t seed) : state_(seed) {}

  constexpr std::uint64_t next() { return splitmix64_of(state_ += splitmix64_step); }

private:
  std::uint64_t state_;
};

} // namespace troupe
