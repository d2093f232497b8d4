// What the passes of top_k tell each other: counts of magnitudes, and where the k-th largest is.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace troupe::kernels::detail {

// A magnitude has 31 bits: 11, 10 and 10 of them are told apart in one round.
constexpr int magnitude_shifts[] = {20, 10, 0};
constexpr std::size_t magnitude_bins = 2048;
using magnitude_counts = std::array<std::uint32_t, magnitude_bins>;

struct selection {
  std::uint32_t least;  ///< The magnitude of the k-th largest.
  std::size_t of_least; ///< How many with this very magnitude are taken.
};

/// As an integer, which has the order that magnitudes have as floats.
inline std::uint32_t magnitude(float x) { return std::bit_cast<std::uint32_t>(x) & 0x7fffffff; }

} // namespace troupe::kernels::detail
