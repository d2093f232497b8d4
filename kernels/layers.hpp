// Computes the layers of a fully connected network on a device, except matrix products. On the CPU
// the trainer's own loops do so.
//
//   add_bias       z[r][c] += bias[c]; with relu, then z = max(z, 0), and NaN becomes 0
//   relu_gradient  delta[i] = 0 where output[i] is not above 0
//   sum_rows       sum[c] = in[0][c] + in[1][c] + ...
//   softmax_delta  loss[r] = -log p[r][label[r]], p being softmax of the row;
//                  z[r][c] = (p[r][c] - (c == label[r])) / rows
//
// Shapes:       z, in f32[rows, columns]; bias, sum f32[columns]; label u32[rows], each below
//               columns; loss f32[rows]; output, delta of one length. No span may be empty.
// Aliasing:     none.
// Max error:    with u = 2^-24: add_bias 1 rounding; sum_rows (rows - 1) u sum of |in|;
//               softmax_delta (8 + columns / 256 + 2 |z|max) u for p, loss (16 + 4 |z|max) u.
// Determinism:  bit-identical from run to run on one device; softmax_delta differs between devices
//               and the emulation, as exp() and log() do.
// Cost:         one pass over z, delta or in; three for softmax_delta. Enqueued, no allocation.
#pragma once

#include "kernels/device_stream.hpp"

#include <cstdint>
#include <span>

namespace troupe::kernels {

void add_bias(stream at, std::span<float> z, std::span<const float> bias, bool relu);
void relu_gradient(stream at, std::span<float> delta, std::span<const float> output);
void sum_rows(stream at, std::span<float> sum, std::span<const float> in);
void softmax_delta(stream at, std::span<float> z, std::span<const std::uint32_t> label,
                   std::span<float> loss);

} // namespace troupe::kernels
