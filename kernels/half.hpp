// Converts floats to 16 bits: IEEE binary16 (fp16) and bfloat16 (bf16, the upper half of a float).
//
//   to_x    y = x rounded to the nearest number of the format, ties to the even one
//   from_x  y = x, exactly
//
// Overflow:     finite x beyond the largest finite number of the format become that number: 65504,
//               and 2^128 - 2^120 of bf16. So finite numbers stay finite.
// Special:      infinities stay; a NaN becomes the quiet NaN of its sign; -0 stays. Denormals of
//               either format are numbers like others, whatever the thread's mode.
// Shapes:       both spans have equal lengths, which may be 0. No overlap.
// Max error:    of a round trip, if x does not overflow: fp16 max(2^-11 |x|, 2^-25),
//               bf16 max(2^-8 |x|, 2^-134).
// Determinism:  bit-identical on every CPU target: integers, and float sums that are exact or
//               rounded once.
// Cost:         one pass, 6n bytes; no allocation.
#pragma once

#include "kernels/device_stream.hpp"

#include <cstdint>
#include <span>

namespace troupe::kernels {

void to_fp16(std::span<const float> x, std::span<std::uint16_t> y);
void from_fp16(std::span<const std::uint16_t> x, std::span<float> y);
void to_bf16(std::span<const float> x, std::span<std::uint16_t> y);
void from_bf16(std::span<const std::uint16_t> x, std::span<float> y);

// -- on a stream; spans are memory of its device; results are the same bytes ----------------------
// Each call enqueues its work, which is complete when the stream has reached it.

void to_fp16(stream at, std::span<const float> x, std::span<std::uint16_t> y);
void from_fp16(stream at, std::span<const std::uint16_t> x, std::span<float> y);
void to_bf16(stream at, std::span<const float> x, std::span<std::uint16_t> y);
void from_bf16(stream at, std::span<const std::uint16_t> x, std::span<float> y);

} // namespace troupe::kernels
