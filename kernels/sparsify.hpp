// Takes k of n floats, with error feedback: the rest stays in the residual, exactly.
//
// With v = x + residual:
//   top_k     takes the k elements of the largest |v|; of equal ones, those of the lowest index. A
//             NaN counts as larger than infinity, and as equal to other NaNs. places: their
//             indices, ascending.
//   random_k  takes one element of each of k stretches of about equal length. Stretch j is
//             [floor(j n / k), floor((j + 1) n / k)); its element is a function of (seed, j). So
//             each is taken with probability k / n, up to the rounding of stretches.
// values = v at the places; residual = v, but 0 at the places.
//   put_random_k  writes values to the places that random_k takes, and 0 elsewhere.
//
// Shapes:       x, residual, y f32[n], n < 2^32; places u32[k], values f32[k]; k <= n; for random_k
//               and put_random_k also k > 0 if n > 0.
// Aliasing:     none.
// Max error:    v one rounding; the rest is exact.
// Determinism:  bit-identical on every CPU target.
// Cost:         random_k: one pass. top_k: three to four over v, which should fit a cache; no
//               allocation.
#pragma once

#include "kernels/device_stream.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace troupe::kernels {

void top_k(std::span<const float> x, std::span<float> residual, std::span<std::uint32_t> places,
           std::span<float> values);
void random_k(std::span<const float> x, std::span<float> residual, std::uint64_t seed,
              std::span<float> values);
void put_random_k(std::span<const float> values, std::uint64_t seed, std::span<float> y);

// -- on a stream; spans are memory of its device; results are the same bytes, except for NaNs -----
// Each call enqueues its work, which is complete when the stream has reached it.

/// Elements of v in a tile, in which one block of threads of top_k counts the large ones.
constexpr std::size_t top_k_tile = 1024;

/// Returns the scratch numbers of top_k on a device for n floats: counts, the k-th largest, and two
/// numbers for each tile.
constexpr std::size_t top_k_scratch(std::size_t n) {
  return 2048 + 2 + 2 * ((n + top_k_tile - 1) / top_k_tile);
}

/// Shapes: scratch u32[top_k_scratch(n)]; any content; later work on the stream may overwrite it.
/// Cost: six passes over v.
void top_k(stream at, std::span<const float> x, std::span<float> residual,
           std::span<std::uint32_t> places, std::span<float> values,
           std::span<std::uint32_t> scratch);
void random_k(stream at, std::span<const float> x, std::span<float> residual, std::uint64_t seed,
              std::span<float> values);
void put_random_k(stream at, std::span<const float> values, std::uint64_t seed, std::span<float> y);

} // namespace troupe::kernels
