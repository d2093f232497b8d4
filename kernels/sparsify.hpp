// k of n floats, with error feedback: what is not taken stays in the residual, exactly.
//
// With v = x + residual:
//   top_k     takes the k elements of the largest |v|, of equal ones those of the lowest index; a
//             NaN counts as larger than infinity, and as equal to others. places: their indices,
//             ascending.
//   random_k  takes one element of each of k stretches of about equal length, stretch j being
//             [floor(j n / k), floor((j + 1) n / k)), which one is a function of (seed, j); so
//             each is taken with probability k / n, up to the rounding of stretches.
// values = v at the places; residual = v, but 0 at the places.
//   put_random_k  writes values to the places that random_k takes, and 0 elsewhere.
//
// Shapes:       x, residual, y f32[n], n < 2^32; places u32[k], values f32[k]; k <= n, and for
//               random_k and put_random_k k > 0 where n > 0.
// Aliasing:     none.
// Max error:    v one rounding; the rest is exact.
// Determinism:  bit-identical on every CPU target.
// Cost:         random_k one pass. top_k three to four over v, which had better fit a cache; no
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

// -- the same on a stream; spans are memory of its device; the same bytes, but for NaNs -----------
// Enqueued, done when the stream has come to it.

/// Of v for which top_k counts at once what is large: a block of threads has one tile.
constexpr std::size_t top_k_tile = 1024;

/// Numbers that top_k needs on a device for n floats: counts, where the k-th largest is, and for
/// each tile two numbers.
constexpr std::size_t top_k_scratch(std::size_t n) {
  return 2048 + 2 + 2 * ((n + top_k_tile - 1) / top_k_tile);
}

/// Shapes: scratch u32[top_k_scratch(n)]; any content; it may be overwritten by any work that
/// follows on the stream. Cost: six passes over v.
void top_k(stream at, std::span<const float> x, std::span<float> residual,
           std::span<std::uint32_t> places, std::span<float> values,
           std::span<std::uint32_t> scratch);
void random_k(stream at, std::span<const float> x, std::span<float> residual, std::uint64_t seed,
              std::span<float> values);
void put_random_k(stream at, std::span<const float> values, std::uint64_t seed, std::span<float> y);

} // namespace troupe::kernels
