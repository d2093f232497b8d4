// Converts floats to 8-bit integers with one scale for each block of 256.
//
// With top = the largest |x| of a block:
//   scale = min(top / 127, largest float that can be multiplied by 127)
//   nearest     q = x * (127 / top) rounded to the nearest integer, ties to the even one
//   stochastic  q = floor(x * (127 / top) + u), at most 127; u in [0, 1) is a function of the seed
//               and the element's index: equal inputs give equal bytes
//   back        y = q * scale
//
// Special:      a block with top < 2^-100, such as one of zeros, has scale 0 and gives zeros; one
//               with an infinity or NaN has a scale of NaN and gives NaNs. 0 always gives 0.
// Shapes:       x, q, y have n elements, n < 2^32, which may be 0; scales (n + 255) / 256.
// Aliasing:     none.
// Max error:    of a round trip with top >= 2^-100: nearest 0.5001 scale, stochastic 1.0001 scale;
//               the mean over u is within 2^-15 scale of x.
// Determinism:  bit-identical on every CPU target.
// Cost:         x is read twice, the second time from the L1 cache; no allocation.
#pragma once

#include "kernels/device_stream.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace troupe::kernels {

constexpr std::size_t int8_block = 256;

void to_int8(std::span<const float> x, std::span<std::int8_t> q, std::span<float> scales);
void to_int8_stochastic(std::span<const float> x, std::uint64_t seed, std::span<std::int8_t> q,
                        std::span<float> scales);
void from_int8(std::span<const std::int8_t> q, std::span<const float> scales, std::span<float> y);

// -- on a stream; spans are memory of its device; results are the same bytes ----------------------
// Each call enqueues its work, which is complete when the stream has reached it.

void to_int8(stream at, std::span<const float> x, std::span<std::int8_t> q,
             std::span<float> scales);
void to_int8_stochastic(stream at, std::span<const float> x, std::uint64_t seed,
                        std::span<std::int8_t> q, std::span<float> scales);
void from_int8(stream at, std::span<const std::int8_t> q, std::span<const float> scales,
               std::span<float> y);

} // namespace troupe::kernels
