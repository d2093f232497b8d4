// Converts floats to one bit each, and two means for each block of 1024, with error feedback
// (Seide, Fu, Droppo, Li, Yu 2014, "1-bit stochastic gradient descent").
//
//   to    v = x + residual
//         bit i = v[i] is not below zero (its sign bit is clear)
//         mean[0], mean[1] = mean of the block's v with bit 0, with bit 1; 0 if there are none
//         residual = v - mean[bit], for the next time
//   from  y = mean[bit]
//
// Shapes:       x, residual, y have n elements, which may be 0; bits (n + 7) / 8 bytes, the low bit
//               first, zeros after the last; means 2 * ((n + 1023) / 1024).
// Aliasing:     none.
// Requires:     v is finite; otherwise means and residual are not finite.
// Max error:    v one rounding; means 2^-24 relative, and 1024 * 2^-53 of the mean magnitude; the
//               residual one rounding of v - y.
// Determinism:  bit-identical on every CPU target: sums run over 16 virtual lanes in float64, as in
//               vector_ops.hpp.
// Cost:         x and residual are read once from memory, residual is written; no allocation.
#pragma once

#include "kernels/device_stream.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace troupe::kernels {

constexpr std::size_t onebit_block = 1024;

void to_onebit(std::span<const float> x, std::span<float> residual, std::span<std::uint8_t> bits,
               std::span<float> means);
void from_onebit(std::span<const std::uint8_t> bits, std::span<const float> means,
                 std::span<float> y);

// -- on a stream; spans are memory of its device; results, means too, are the same bytes ----------
// Each call enqueues its work, which is complete when the stream has reached it.

void to_onebit(stream at, std::span<const float> x, std::span<float> residual,
               std::span<std::uint8_t> bits, std::span<float> means);
void from_onebit(stream at, std::span<const std::uint8_t> bits, std::span<const float> means,
                 std::span<float> y);

} // namespace troupe::kernels
