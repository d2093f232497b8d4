// Defines the arithmetic of sparsify.hpp: the data that passes of top_k exchange, which are counts
// of magnitudes and the k-th largest; and the elements that random_k draws.
#pragma once

#include "kernels/host_device.hpp"
#include "kernels/random_bits.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace troupe::kernels::detail {

// A magnitude has 31 bits: rounds distinguish 11, 10 and 10 of them.
constexpr int magnitude_bits_all = 31;
constexpr int magnitude_shifts[] = {20, 10, 0};
constexpr std::size_t magnitude_bins = 2048;
using magnitude_counts = std::array<std::uint32_t, magnitude_bins>;

struct selection {
  std::uint32_t least;  ///< The magnitude of the k-th largest.
  std::size_t of_least; ///< Number of taken elements with exactly this magnitude.
};

/// Returns the magnitude as an integer, which has the same order as the float. All NaNs are equal:
/// the NaN of a sum depends on the device.
TROUPE_HD std::uint32_t magnitude(float x) {
  constexpr std::uint32_t least_nan = 0x7f800001;
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x) & 0x7fffffff;
  return bits < least_nan ? bits : least_nan;
}

/// Returns the beginning of random_k's stretch j, which is the end of stretch j - 1.
TROUPE_HD std::uint64_t stretch_begin(std::uint64_t j, std::uint64_t count, std::uint64_t k) {
  return j * count / k;
}

/// Returns the element drawn of stretch j, [begin, end).
TROUPE_HD std::uint64_t drawn_place(std::uint64_t begin, std::uint64_t end, std::uint32_t key,
                                    std::uint32_t j) {
  return begin + ((end - begin) * random_bits(key, j) >> 32);
}

} // namespace troupe::kernels::detail
