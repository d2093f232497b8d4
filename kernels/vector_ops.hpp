// Computes whole-vector arithmetic for shards, reducers and workers.
//
// Shapes:       spans of one call have equal lengths, which may be 0 and need no multiple.
// Aliasing:     an output may be the very span of an input, or must not overlap any.
// Max error:    with u = 2^-24, against exact arithmetic on the given floats, if no value
//               overflows. Denormal inputs and results count in full, unless the caller treats them
//               as zeros (flush_denormals.hpp).
// Determinism:  bit-identical on every CPU target, except for NaN bits. Reductions run over
//               16 virtual lanes of float64, element i in lane i mod 16, combined lane 0 + lane 8,
//               ... pairwise in one fixed tree.
// Cost:         one pass over each span of length n; no allocation.
#pragma once

#include "kernels/reduction.hpp"
#include "kernels/device_stream.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace troupe::kernels {

/// Inputs that a stream adds up in one launch, which carries their addresses.
constexpr std::size_t sum_group = 64;

/// total[i] = x0[i] + x1[i] + ..., in the order of the inputs; zeros if there is none.
/// Max error: u for each sum, so (inputs - 1) u (|x0[i]| + |x1[i]| + ...), and terms in u^2.
/// Cost: reads 4n bytes of each input at the same time, writes 4n.
void sum(std::span<float> total, std::span<const std::span<const float>> inputs);
/// sum[i] += x[i]. Max error: 0.5 ulp, one rounding. Cost: reads 8n bytes, writes 4n.
void add(std::span<float> sum, std::span<const float> x);
/// y[i] += a * x[i]. Max error: u |a x[i]| + u |result|, two roundings, 2^-150 more where a * x[i]
/// is denormal. Cost: reads 8n bytes, writes 4n.
void axpy(std::span<float> y, float a, std::span<const float> x);
/// x[i] *= a. Max error: 0.5 ulp, one rounding. Cost: reads and writes 4n bytes.
void scale(std::span<float> x, float a);
/// x[i] = min(max(x[i], -limit), limit); NaN stays. Requires: limit >= 0. Max error: none.
/// Cost: reads and writes 4n bytes.
void clip(std::span<float> x, float limit);
/// If norm(x) > limit: x[i] *= limit / norm(x). Returns that factor, else 1. With NaN in x it
/// leaves x alone and returns 1; with infinity the factor is 0. Requires: limit > 0. Max error: 2u
/// |result|, 2^-150 more if that is denormal, plus the error of norm(x). Cost: reads 4n bytes, and
/// as scale() if it clips.
float clip_by_norm(std::span<float> x, float limit);
/// Returns the sum of x[i] * y[i]. Max error: n 2^-53 (|x[0] y[0]| + |x[1] y[1]| + ...). Cost:
/// reads 8n bytes.
double dot(std::span<const float> x, std::span<const float> y);
/// Returns the sum of x[i]^2. Neither overflows nor underflows. Max error: n 2^-53 relative. Cost:
/// reads 4n bytes.
double squared_norm(std::span<const float> x);
/// Returns the square root of squared_norm(x). Max error: (n / 2 + 1) 2^-53 relative.
double norm(std::span<const float> x);
/// Returns the index of the first element that is NaN or infinite; x.size() if there is none. Cost:
/// reads 4n bytes.
std::size_t first_non_finite(std::span<const float> x);

// -- on a stream; spans and pointers are memory of its device -------------------------------------
// Each call enqueues its work, which is complete when the stream has reached it. Later work on the
// stream may overwrite `partials`. Reductions add up in another order than above, the same on every
// device. All other results have the bytes of the CPU. Denormals count in full.

/// Reads the spans of `inputs` at once, but their floats when the stream reaches the work.
/// Aliasing: total may be the very span of one of the first sum_group inputs. Cost: 8n bytes more
/// for every further sum_group - 1 inputs.
void sum(stream at, std::span<float> total, std::span<const std::span<const float>> inputs);
void add(stream at, std::span<float> sum, std::span<const float> x);
void axpy(stream at, std::span<float> y, float a, std::span<const float> x);
void scale(stream at, std::span<float> x, float a);
void clip(stream at, std::span<float> x, float limit);
/// Writes the result to `factor`; it has the error of the stream's norm, and x is scaled with it.
void clip_by_norm(stream at, std::span<float> x, float limit,
                  std::span<double, partials_max> partials, float* factor);
void dot(stream at, std::span<const float> x, std::span<const float> y,
         std::span<double, partials_max> partials, double* result);
void squared_norm(stream at, std::span<const float> x, std::span<double, partials_max> partials,
                  double* result);
void norm(stream at, std::span<const float> x, std::span<double, partials_max> partials,
          double* result);
void first_non_finite(stream at, std::span<const float> x,
                      std::span<std::uint64_t, partials_max> partials, std::uint64_t* result);

} // namespace troupe::kernels
