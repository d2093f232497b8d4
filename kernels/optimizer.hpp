// Optimiser steps on one stretch of a block: reads old weights, old state and gradient once, writes
// new weights and new state, and notices a gradient that is not finite on the way.
//
// With g' = clamp(g * gradient_scale, -clip_value, +clip_value) + weight_decay * w
// (clip_value 0: no clamp):
//   sgd       w' = w - rate * g'
//   momentum  m' = mu * m + g';                          w' = w - rate * m'
//   adagrad   s' = s + g' * g';                          w' = w - rate * g' / (sqrt(s') + epsilon)
//   adam      m' = beta1 * m + (1 - beta1) * g';  v' = beta2 * v + (1 - beta2) * g' * g'
//             w' = w - rate * (m' / (1 - beta1^t)) / (sqrt(v' / (1 - beta2^t)) + epsilon)
// Sources: Duchi, Hazan, Singer 2011 (adagrad); Kingma, Ba 2015, algorithm 1 (adam).
//
// Shapes:       all spans f32[n] but state f32[n * state_per_weight(kind)]: m, or s, or m then v.
// Aliasing:     outputs may be the very spans of their inputs, or must not overlap any input.
// Denormals:    floats below 2^-126 count as zeros of their sign, in inputs and results. The mode
//               of the calling thread is as before afterwards. (flush_denormals.hpp)
// Max error:    against float64 on such inputs, with u = 2^-24 and no intermediate above the float
//               range:
//                 g'  2u (|g * gradient_scale| + |weight_decay * w|)
//               and from that rounded g' on:
//                 m'  3u (mu |m| + |g'|)               adam: 3u (beta1 |m| + (1 - beta1) |g'|)
//                 s'  2u s'                            v'    5u v'
//                 w'  u |w| + k u |step|          k: sgd 3, momentum 6, adagrad 7, adam 13
//               step being what the formula subtracts, computed from absolute values of m and g';
//               plus 2^-123 (w': 2^-96, for epsilon >= 1e-8) for what is flushed to zero.
//               Squares overflow above |g'| = 1.8e19: s' and v' are then infinite and w' stays w.
// Determinism:  bit-identical on every CPU target: no contraction, no reordering. Between x86-64
//               and aarch64 but for results that round up to 2^-126, which aarch64 flushes too.
// Cost:         one pass; reads 4n (2 + state), writes 4n (1 + state) bytes; no allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace troupe::kernels {

enum class optimizer : std::uint8_t { sgd, momentum, adagrad, adam };

constexpr std::size_t state_per_weight(optimizer kind) {
  return kind == optimizer::sgd ? 0 : kind == optimizer::adam ? 2 : 1;
}

struct step_options {
  optimizer kind = optimizer::sgd;
  float rate = 0.1f;     ///< Learning rate. Finite, > 0.
  float momentum = 0.9f; ///< mu, or beta1 of adam.
  float beta2 = 0.999f;
  float epsilon = 1e-8f; ///< > 0: what a zero gradient on fresh state is divided by.
  float weight_decay = 0.0f;
  float clip_value = 0.0f;     ///< 0: off.
  float gradient_scale = 1.0f; ///< Applied first: 1 / slots of a sum, times the clip by norm.
  std::uint64_t step = 1;      ///< t of adam: steps taken on these weights, this one included.
};

/// Returns false where an element of `gradient` is NaN or infinite; the outputs are then
/// unspecified.
[[nodiscard]] bool optimizer_step(std::span<float> new_weights, std::span<float> new_state,
                                  std::span<const float> weights, std::span<const float> state,
                                  std::span<const float> gradient, const step_options& options);

/// The same on memory that other threads update at the same time (Recht et al. 2011, "Hogwild!"):
/// each element is loaded and stored with relaxed atomics, 256 of them at a time; what others store
/// between the two is lost. Others see a NaN at once: ask first_non_finite(gradient) before.
[[nodiscard]] bool optimizer_step_shared(std::span<float> weights, std::span<float> state,
                                         std::span<const float> gradient,
                                         const step_options& options);

/// The same in place on rows that lie apart, as a sparse table has them. rows[i] points to weights
/// f32[width] and, right behind them, their state f32[width * state_per_weight]; no row comes
/// twice.
/// Shapes: gradient f32[rows.size() * width]; steps u64[rows.size()] for adam, else empty: t of
/// each row, in place of options.step.
/// Requires: every element of `gradient` is finite.
/// Cost: for adam, two powers for each run of rows with equal t.
void optimizer_step_rows(std::span<float* const> rows, std::size_t width,
                         std::span<const float> gradient, std::span<const std::uint64_t> steps,
                         const step_options& options);

} // namespace troupe::kernels
