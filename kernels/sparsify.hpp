// k of n floats, with error feedback: what is not taken stays in the residual, exactly.
//
// With v = x + residual:
//   top_k     takes the k elements of the largest |v|, of equal ones those of the lowest index; a
//             NaN counts as larger than infinity. places: their indices, ascending.
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

#include <cstdint>
#include <span>

namespace troupe::kernels {

void top_k(std::span<const float> x, std::span<float> residual, std::span<std::uint32_t> places,
           std::span<float> values);
void random_k(std::span<const float> x, std::span<float> residual, std::uint64_t seed,
              std::span<float> values);
void put_random_k(std::span<const float> values, std::uint64_t seed, std::span<float> y);

} // namespace troupe::kernels
