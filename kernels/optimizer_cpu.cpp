// The loops are plain C++, so that CUDA shares their arithmetic. The compiler vectorises them for
// each target, as in vector_ops_cpu.cpp.
#include "kernels/optimizer.hpp"

#include "kernels/flush_denormals.hpp"
#include "kernels/optimizer.inl.hpp"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/optimizer_cpu.cpp"
#include "hwy/foreach_target.h"

#include "kernels/simd.inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace troupe::kernels::HWY_NAMESPACE {
namespace {

/// Floats computed in the first-level cache at a time. Few, so that memory reads and writes take
/// short turns: with 512, steps of three vectors lose a fifth.
constexpr std::size_t tile = 64;

/// Writes past the caches, which then need not fetch lines before they are overwritten.
template <optimizer_kind Kind>
bool step_streamed(const detail::step_memory& at, const detail::step_constants& constants) {
  constexpr floats d;
  constexpr std::size_t states = state_per_weight(Kind), width = hn::MaxLanes(d);
  HWY_ALIGN_MAX float made[(1 + states) * tile];
  const auto write = [=](const float* from, std::size_t count, float* to) HWY_ATTR {
    std::size_t i = 0;
    for (; i + width <= count; i += width)
      hn::Stream(hn::Load(d, from + i), d, to + i);
    std::copy(from + i, from + count, to + i);
  };
  bool finite = true;
  for (std::size_t begin = 0; begin < at.count; begin += tile) {
    const std::size_t count = std::min(tile, at.count - begin);
    const float* const state = states > 0 ? at.state + begin : nullptr;
    const detail::step_memory here{
      made, made + tile, at.weights + begin, state, at.gradient + begin, count, at.second, tile};
    finite = detail::step_stretch<Kind>(here, constants) && finite;
    write(made, count, at.new_weights + begin);
    for (std::size_t k = 0; k < states; ++k)
      write(made + (1 + k) * tile, count, at.new_state + k * at.new_second + begin);
  }
  hwy::FlushStream();
  return finite;
}

/// Returns whether the step overwrites no input, and each of its vectors begins on a cache line.
template <optimizer_kind Kind>
bool may_be_streamed(const detail::step_memory& at) {
  constexpr std::size_t line = 64, states = state_per_weight(Kind);
  const auto begins_line = [](const float* x) {
    return reinterpret_cast<std::uintptr_t>(x) % line == 0;
  };
  return at.count >= streamed_min && at.new_weights != at.weights && begins_line(at.new_weights)
         && (states < 1 || begins_line(at.new_state))
         && (states < 2 || begins_line(at.new_state + at.new_second));
}

bool step(const detail::step_memory& at, optimizer_kind kind,
          const detail::step_constants& constants) {
  return detail::with_kind(kind, [&]<optimizer_kind Kind>() HWY_ATTR {
    return may_be_streamed<Kind>(at) ? step_streamed<Kind>(at, constants)
                                     : detail::step_stretch<Kind>(at, constants);
  });
}

void step_rows(const detail::row_memory& at, optimizer_kind kind,
               const detail::step_constants* constants, std::size_t constants_stride) {
  detail::with_kind(kind, [&]<optimizer_kind Kind>() HWY_ATTR {
    detail::step_rows_of<Kind>(at, constants, constants_stride);
  });
}

} // namespace
} // namespace troupe::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace troupe::kernels {

namespace {

/// Elements that a shared step copies, steps and copies back. Loops of atomics are not vectorised;
/// the arithmetic between them is. Larger: more updates of others are lost meanwhile.
constexpr std::size_t shared_stretch = 256;

void load_shared(const float* from, std::size_t count, float* to) {
  // The spans of a shared step are writable; atomic_ref of a const float comes only with C++26.
  #pragma GCC unroll 8
  for (std::size_t i = 0; i < count; ++i)
    to[i] = std::atomic_ref<float>(const_cast<float&>(from[i])).load(std::memory_order_relaxed);
}

void store_shared(const float* from, std::size_t count, float* to) {
  #pragma GCC unroll 8
  for (std::size_t i = 0; i < count; ++i)
    std::atomic_ref<float>(to[i]).store(from[i], std::memory_order_relaxed);
}

/// Rows whose constants are on the stack at a time.
constexpr std::size_t rows_max = 64;

HWY_EXPORT(step);
HWY_EXPORT(step_rows);

/// Steps each row with the constants of its own t.
void step_aged_rows(const detail::row_memory& all, std::span<const std::uint64_t> steps,
                    step_options options) {
  detail::step_constants constants[rows_max];
  for (std::size_t first = 0; first < all.count; first += rows_max) {
    const std::size_t count = std::min(rows_max, all.count - first);
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t step = steps[first + i];
      if (i > 0 && step == options.step) {
        constants[i] = constants[i - 1];
        continue;
      }
      options.step = step;
      constants[i] = detail::constants_of(options);
    }
    HWY_DYNAMIC_DISPATCH(step_rows)
    ({all.rows + first, all.gradient + first * all.width, count, all.width}, options.kind,
     constants, 1);
  }
}

} // namespace

bool optimizer_step(std::span<float> new_weights, std::span<float> new_state,
                    std::span<const float> weights, std::span<const float> state,
                    std::span<const float> gradient, const step_options& options) {
  assert(weights.size() == gradient.size() && new_weights.size() == gradient.size());
  assert(state.size() == gradient.size() * state_per_weight(options.kind));
  assert(new_state.size() == state.size());
  assert(!counts_steps(options.kind) || options.step > 0);
  const flush_denormals guard;
  return HWY_DYNAMIC_DISPATCH(step)({new_weights.data(), new_state.data(), weights.data(),
                                     state.data(), gradient.data(), gradient.size()},
                                    options.kind, detail::constants_of(options));
}

bool optimizer_step_shared(std::span<float> weights, std::span<float> state,
                           std::span<const float> gradient, const step_options& options) {
  assert(weights.size() == gradient.size());
  assert(state.size() == gradient.size() * state_per_weight(options.kind));
  assert(!counts_steps(options.kind) || options.step > 0);
  const flush_denormals guard;
  const auto constants = detail::constants_of(options);
  const std::size_t states = state_per_weight(options.kind), count = gradient.size();
  bool finite = true;
  for (std::size_t first = 0; first < count; first += shared_stretch) {
    const std::size_t length = std::min(shared_stretch, count - first);
    float here[shared_stretch], state_here[2 * shared_stretch];
    load_shared(weights.data() + first, length, here);
    for (std::size_t i = 0; i < states; ++i)
      load_shared(state.data() + i * count + first, length, state_here + i * length);
    const detail::step_memory at{here,  state_here, here, state_here, gradient.data() + first,
                                 length};
    finite = HWY_DYNAMIC_DISPATCH(step)(at, options.kind, constants) && finite;
    store_shared(here, length, weights.data() + first);
    for (std::size_t i = 0; i < states; ++i)
      store_shared(state_here + i * length, length, state.data() + i * count + first);
  }
  return finite;
}

void optimizer_step_rows(std::span<float* const> rows, std::size_t width,
                         std::span<const float> gradient, std::span<const std::uint64_t> steps,
                         const step_options& options) {
  assert(gradient.size() == rows.size() * width);
  assert(steps.size() == (counts_steps(options.kind) ? rows.size() : 0));
  const flush_denormals guard;
  const detail::row_memory at{rows.data(), gradient.data(), rows.size(), width};
  if (counts_steps(options.kind))
    return step_aged_rows(at, steps, options);
  const auto constants = detail::constants_of(options);
  HWY_DYNAMIC_DISPATCH(step_rows)(at, options.kind, &constants, 0);
}

} // namespace troupe::kernels

#endif
