// Defines the optimisers' arithmetic once: for one weight, and the loop over a stretch of weights.
#pragma once

#include "kernels/host_device.hpp"
#include "kernels/optimizer.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace troupe::kernels::detail {

/// Constants of all elements of a step, rounded once from float64.
struct step_constants {
  float rate;              ///< Adam, adamw: rate / (1 - beta1^t). Ftrl: 1 / rate.
  float keep;              ///< mu, beta1.
  float take;              ///< 1 - beta1.
  float keep_square;       ///< beta2.
  float take_square;       ///< 1 - beta2.
  float square_correction; ///< 1 / (1 - beta2^t).
  float epsilon;
  float l1;
  float beta;
  float weight_decay; ///< Adamw: the factor of w.
  float clip;         ///< Infinity if clipping is off: the clamp then changes no finite value.
  float gradient_scale;
};

/// Returns base^exponent by squaring. std::pow is not used: the C library picks its variant by CPU,
/// and the variants may differ in the last bit.
constexpr double power(double base, std::uint64_t exponent) {
  double result = 1.0;
  for (; exponent != 0; exponent >>= 1) {
    if (exponent & 1)
      result *= base;
    base *= base;
  }
  return result;
}

inline step_constants constants_of(const step_options& options) {
  step_constants k{};
  k.rate = options.rate;
  k.keep = options.momentum;
  k.epsilon = options.epsilon;
  k.l1 = options.l1;
  k.beta = options.beta;
  k.weight_decay = options.weight_decay;
  k.clip = options.clip_value > 0.0f ? options.clip_value : std::numeric_limits<float>::infinity();
  k.gradient_scale = options.gradient_scale;
  if (options.kind == optimizer_kind::ftrl)
    k.rate = static_cast<float>(1.0 / double{options.rate});
  if (options.kind == optimizer_kind::adamw)
    k.weight_decay = static_cast<float>(1.0 - double{options.rate} * options.weight_decay);
  if (counts_steps(options.kind)) {
    const double beta1 = options.momentum, beta2 = options.beta2;
    k.rate = static_cast<float>(options.rate / (1.0 - power(beta1, options.step)));
    k.take = static_cast<float>(1.0 - beta1);
    k.keep_square = options.beta2;
    k.take_square = static_cast<float>(1.0 - beta2);
    k.square_correction = static_cast<float>(1.0 / (1.0 - power(beta2, options.step)));
  }
  return k;
}

/// A weight and its state: first is m, s or z, second is v or q.
struct element {
  float weight, first, second;
};

template <optimizer_kind Kind>
TROUPE_HD element stepped(element old, float gradient, const step_constants& k) {
  const float scaled = std::min(std::max(gradient * k.gradient_scale, -k.clip), k.clip);
  constexpr bool decays_apart = Kind == optimizer_kind::adamw || Kind == optimizer_kind::ftrl;
  const float g = decays_apart ? scaled : scaled + k.weight_decay * old.weight;
  if constexpr (Kind == optimizer_kind::sgd) {
    return {old.weight - k.rate * g, 0.0f, 0.0f};
  } else if constexpr (Kind == optimizer_kind::momentum) {
    const float m = k.keep * old.first + g;
    return {old.weight - k.rate * m, m, 0.0f};
  } else if constexpr (Kind == optimizer_kind::nesterov) {
    const float m = k.keep * old.first + g;
    return {old.weight - k.rate * (g + k.keep * m), m, 0.0f};
  } else if constexpr (Kind == optimizer_kind::adagrad) {
    const float s = old.first + g * g;
    return {old.weight - k.rate * g / (std::sqrt(s) + k.epsilon), s, 0.0f};
  } else if constexpr (Kind == optimizer_kind::ftrl) {
    const float q = old.second + g * g;
    const float root = std::sqrt(q);
    const float z = old.first + g - (root - std::sqrt(old.second)) * k.rate * old.weight;
    const float beyond = std::min(std::max(z, -k.l1), k.l1) - z;
    return {beyond / ((k.beta + root) * k.rate + k.weight_decay), z, q};
  } else {
    const float m = k.keep * old.first + k.take * g;
    const float v = k.keep_square * old.second + k.take_square * g * g;
    const float divisor = std::sqrt(v * k.square_correction) + k.epsilon;
    const float kept = Kind == optimizer_kind::adamw ? k.weight_decay * old.weight : old.weight;
    return {kept - k.rate * m / divisor, m, v};
  }
}

/// The memory that one step reads and writes.
struct step_memory {
  float* new_weights;
  float* new_state;
  const float* weights;
  const float* state;
  const float* gradient;
  std::size_t count;
  std::size_t second = count; ///< In `state`: distance from `first` to `second`, in floats.
  std::size_t new_second = count;
};

template <optimizer_kind Kind>
[[gnu::always_inline]] inline bool step_stretch(step_memory at, step_constants k) {
  constexpr std::size_t states = state_per_weight(Kind);
  constexpr std::uint32_t magnitude = 0x7fffffff, one_exponent = 0x00800000;
  std::uint32_t seen = 0;
  // Outputs are the inputs themselves or separate from them, so elements are independent. Without
  // the pragma the compiler's own overlap check sends every step in place to a scalar loop.
#pragma GCC ivdep
  for (std::size_t i = 0; i < at.count; ++i) {
    const float gradient = at.gradient[i];
    // Carries into the sign bit if all exponent bits are set: NaN or infinity.
    seen |= (std::bit_cast<std::uint32_t>(gradient) & magnitude) + one_exponent;
    element old{at.weights[i], 0.0f, 0.0f};
    if constexpr (states >= 1)
      old.first = at.state[i];
    if constexpr (states >= 2)
      old.second = at.state[at.second + i];
    const element next = stepped<Kind>(old, gradient, k);
    at.new_weights[i] = next.weight;
    if constexpr (states >= 1)
      at.new_state[i] = next.first;
    if constexpr (states >= 2)
      at.new_state[at.new_second + i] = next.second;
  }
  return (seen >> 31) == 0;
}

/// Calls body.operator()<kind>(), so that code that depends on the kind is chosen outside of loops.
template <class Body>
[[gnu::always_inline]] inline auto with_kind(optimizer_kind kind, const Body& body) {
  switch (kind) {
  case optimizer_kind::sgd:
  case optimizer_kind::user: break;
  case optimizer_kind::momentum: return body.template operator()<optimizer_kind::momentum>();
  case optimizer_kind::nesterov: return body.template operator()<optimizer_kind::nesterov>();
  case optimizer_kind::adagrad: return body.template operator()<optimizer_kind::adagrad>();
  case optimizer_kind::adam: return body.template operator()<optimizer_kind::adam>();
  case optimizer_kind::adamw: return body.template operator()<optimizer_kind::adamw>();
  case optimizer_kind::ftrl: return body.template operator()<optimizer_kind::ftrl>();
  }
  return body.template operator()<optimizer_kind::sgd>();
}

/// The memory that a step on rows reads and writes. Each row is f32[width], followed by its state.
struct row_memory {
  float* const* rows;
  const float* gradient;
  std::size_t count;
  std::size_t width;
};

/// Width > 0: known to the compiler, which then needs no loop within a row. constants_stride 0: one
/// entry for all rows; 1: one entry for each.
template <optimizer_kind Kind, std::size_t Width>
[[gnu::always_inline]] inline void step_rows(const row_memory& at, const step_constants* constants,
                                             std::size_t constants_stride) {
  const std::size_t width = Width > 0 ? Width : at.width;
  for (std::size_t i = 0; i < at.count; ++i) {
    float* const row = at.rows[i];
    step_stretch<Kind>({row, row + width, row, row + width, at.gradient + i * width, width},
                       constants[i * constants_stride]);
  }
}

template <optimizer_kind Kind>
[[gnu::always_inline]] inline void
step_rows_of(const row_memory& at, const step_constants* constants, std::size_t constants_stride) {
  switch (at.width) {
  case 1: return step_rows<Kind, 1>(at, constants, constants_stride);
  case 2: return step_rows<Kind, 2>(at, constants, constants_stride);
  case 4: return step_rows<Kind, 4>(at, constants, constants_stride);
  case 8: return step_rows<Kind, 8>(at, constants, constants_stride);
  case 16: return step_rows<Kind, 16>(at, constants, constants_stride);
  case 32: return step_rows<Kind, 32>(at, constants, constants_stride);
  default: return step_rows<Kind, 0>(at, constants, constants_stride);
  }
}

} // namespace troupe::kernels::detail
