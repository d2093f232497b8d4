// Takes optimiser steps on one stretch of a block. A step reads old weights, old state and gradient
// once, writes new weights and new state, and detects a gradient that is not finite.
//
// With g' = clamp(g * gradient_scale, -clip_value, +clip_value) + weight_decay * w
// (clip_value 0: no clamp):
//   sgd       w' = w - rate * g'
//   momentum  m' = mu * m + g';                          w' = w - rate * m'
//   nesterov  m' = mu * m + g';                          w' = w - rate * (g' + mu * m')
//   adagrad   s' = s + g' * g';                          w' = w - rate * g' / (sqrt(s') + epsilon)
//   adam      m' = beta1 * m + (1 - beta1) * g';  v' = beta2 * v + (1 - beta2) * g' * g'
//             w' = w - rate * (m' / (1 - beta1^t)) / (sqrt(v' / (1 - beta2^t)) + epsilon)
// and, with g' without its last term,
//   adamw     m', v' and step as adam;  w' = (1 - rate * weight_decay) * w - adam's step
//   ftrl      z' = z + g' - (sqrt(q') - sqrt(q)) / rate * w;  q' = q + g' * g'
//             w' = (clamp(z', -l1, +l1) - z') / ((beta + sqrt(q')) / rate + weight_decay)
// so ftrl's weights are 0 where |z'| <= l1. Their initial values, with z and q 0, count little:
// ftrl is for linear models, which begin at 0.
// Sources: Duchi, Hazan, Singer 2011 (adagrad); Kingma, Ba 2015, algorithm 1 (adam); Loshchilov,
// Hutter 2019, algorithm 2 with a constant schedule (adamw); McMahan et al. 2013, algorithm 1
// (ftrl: alpha is rate, lambda2 is weight_decay, n is q).
//
// Shapes:       all spans f32[n], except state f32[n * state_per_weight(kind)]: m, or s, or m then
//               v, or z then q.
// Aliasing:     outputs may be the very spans of their inputs, or must not overlap any input.
// Denormals:    floats below 2^-126 count as zeros of their sign, in inputs and results. The
//               calling thread's mode is restored afterwards. (flush_denormals.hpp)
// Max error:    against float64 on such inputs, with u = 2^-24 and no intermediate above the float
//               range:
//                 g'  2u (|g * gradient_scale| + |weight_decay * w|)
//               and from that rounded g' on:
//                 m'  3u (mu |m| + |g'|)               adam: 3u (beta1 |m| + (1 - beta1) |g'|)
//                 s'  2u s'                            v'    5u v'
//                 z'  3u (|z| + |g'|) + (9u sqrt(q') + 2^-62) |w| / rate              q'  2u q'
//                 w'  u |w| + k u |step|          k: sgd 3, momentum 6, nesterov 7, adagrad 7,
//                                                    adam 13; adamw 13, and 3u |w|
//                     ftrl, from the rounded z' and q' on: 8u |w'|
//               where `step` is the subtrahend of the formula, computed from absolute values of m
//               and g'; plus 2^-123 (w', z': 2^-96, for epsilon, beta >= 1e-8 and rate >= 1e-8) for
//               flushed values.
//               Squares overflow above |g'| = 1.8e19: s', v' and q' are then infinite and w' stays
//               w; ftrl's w' is then 0 or NaN.
// Determinism:  bit-identical on every CPU target: no contraction, no reordering. Between x86-64
//               and aarch64, results that round up to 2^-126 differ: aarch64 flushes them.
// Cost:         one pass; reads 4n (2 + state), writes 4n (1 + state) bytes; no allocation. From 16
//               MiB on, writes past the caches into other memory that begins on cache lines.
#pragma once

#include "base/optimizer_kind.hpp"
#include "kernels/device_stream.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace troupe::kernels {

/// The functions below require another kind than optimizer_kind::user.
constexpr std::size_t state_per_weight(optimizer_kind kind) {
  switch (kind) {
  case optimizer_kind::sgd:
  case optimizer_kind::user: return 0; // The table says how much state its function has.
  case optimizer_kind::momentum:
  case optimizer_kind::nesterov:
  case optimizer_kind::adagrad: return 1;
  case optimizer_kind::adam:
  case optimizer_kind::adamw:
  case optimizer_kind::ftrl: return 2;
  }
  return 0;
}

/// Returns whether a step depends on the number of earlier steps.
constexpr bool counts_steps(optimizer_kind kind) {
  return kind == optimizer_kind::adam || kind == optimizer_kind::adamw;
}

struct step_options {
  optimizer_kind kind = optimizer_kind::sgd;
  float rate = 0.1f;     ///< Learning rate. Finite, > 0.
  float momentum = 0.9f; ///< mu, or beta1 of adam and adamw.
  float beta2 = 0.999f;
  float epsilon = 1e-8f; ///< > 0: the divisor for a zero gradient on fresh state.
  float l1 = 0.0f;       ///< ftrl: the bound that |z| must exceed for a nonzero weight. >= 0.
  float beta = 1.0f;     ///< ftrl: shortens the first steps. > 0.
  float weight_decay = 0.0f;
  float clip_value = 0.0f;     ///< 0: off.
  float gradient_scale = 1.0f; ///< Applied first: 1 / slots of a sum, times the clip by norm.
  std::uint64_t step = 1;      ///< Steps taken on these weights, this one included.
};

/// Takes a step. Returns false if an element of `gradient` is NaN or infinite; the outputs are then
/// unspecified.
[[nodiscard]] bool optimizer_step(std::span<float> new_weights, std::span<float> new_state,
                                  std::span<const float> weights, std::span<const float> state,
                                  std::span<const float> gradient, const step_options& options);

/// Enqueues a step on a stream, complete when the stream has reached it. All spans, and
/// `not_finite`, are memory of its device. Instead of returning false it sets `not_finite` to 1,
/// and else leaves it alone. Results are bit-identical to the CPU's, except those that round up to
/// 2^-126.
void optimizer_step(stream at, std::span<float> new_weights, std::span<float> new_state,
                    std::span<const float> weights, std::span<const float> state,
                    std::span<const float> gradient, const step_options& options,
                    std::uint32_t* not_finite);

/// Takes a step on memory that other threads update at the same time (Recht et al. 2011,
/// "Hogwild!"). Each element is loaded and stored with relaxed atomics, 256 elements at a time;
/// stores of other threads between the two are lost. Others see a NaN at once: check
/// first_non_finite(gradient) before.
[[nodiscard]] bool optimizer_step_shared(std::span<float> weights, std::span<float> state,
                                         std::span<const float> gradient,
                                         const step_options& options);

/// Takes a step in place on separate rows, as a sparse table has them. rows[i] points to weights
/// f32[width] followed by their state f32[width * state_per_weight]; rows do not repeat. Shapes:
/// gradient f32[rows.size() * width]; steps u64[rows.size()] if counts_steps(kind), else empty: t
/// of each row, in place of options.step.
/// Requires: every element of `gradient` is finite.
/// Cost: with steps, two powers for each run of rows with equal t.
void optimizer_step_rows(std::span<float* const> rows, std::size_t width,
                         std::span<const float> gradient, std::span<const std::uint64_t> steps,
                         const step_options& options);

} // namespace troupe::kernels
