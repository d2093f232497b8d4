#include "kernels/optimizer.hpp"

#include "kernels/cpu_clones.hpp"
#include "kernels/flush_denormals.hpp"
#include "kernels/optimizer.inl.hpp"

#include <algorithm>
#include <atomic>
#include <cassert>

namespace troupe::kernels {

namespace {

/// Elements that a shared step copies, steps and copies back: loops of atomics are not vectorised,
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

/// Rows whose constants lie on the stack at a time.
constexpr std::size_t rows_max = 64;

TROUPE_CPU_CLONES void sgd_rows(const detail::row_memory& at, const detail::step_constants& k) {
  detail::step_rows_of<optimizer::sgd>(at, &k, 0);
}

TROUPE_CPU_CLONES void momentum_rows(const detail::row_memory& at,
                                     const detail::step_constants& k) {
  detail::step_rows_of<optimizer::momentum>(at, &k, 0);
}

TROUPE_CPU_CLONES void adagrad_rows(const detail::row_memory& at, const detail::step_constants& k) {
  detail::step_rows_of<optimizer::adagrad>(at, &k, 0);
}

TROUPE_CPU_CLONES void adam_rows(const detail::row_memory& at, const detail::step_constants* k) {
  detail::step_rows_of<optimizer::adam>(at, k, 1);
}

void adam_step_rows(const detail::row_memory& all, std::span<const std::uint64_t> steps,
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
    adam_rows({all.rows + first, all.gradient + first * all.width, count, all.width}, constants);
  }
}

TROUPE_CPU_CLONES bool plain_step(const detail::step_memory& at, optimizer kind,
                                  const detail::step_constants& constants) {
  return detail::step_any(at, kind, constants);
}

} // namespace

bool optimizer_step(std::span<float> new_weights, std::span<float> new_state,
                    std::span<const float> weights, std::span<const float> state,
                    std::span<const float> gradient, const step_options& options) {
  assert(weights.size() == gradient.size() && new_weights.size() == gradient.size());
  assert(state.size() == gradient.size() * state_per_weight(options.kind));
  assert(new_state.size() == state.size());
  assert(options.kind != optimizer::adam || options.step > 0);
  const flush_denormals guard;
  return plain_step({new_weights.data(), new_state.data(), weights.data(), state.data(),
                     gradient.data(), gradient.size()},
                    options.kind, detail::constants_of(options));
}

bool optimizer_step_shared(std::span<float> weights, std::span<float> state,
                           std::span<const float> gradient, const step_options& options) {
  assert(weights.size() == gradient.size());
  assert(state.size() == gradient.size() * state_per_weight(options.kind));
  assert(options.kind != optimizer::adam || options.step > 0);
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
    finite = plain_step(at, options.kind, constants) && finite;
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
  assert(steps.size() == (options.kind == optimizer::adam ? rows.size() : 0));
  const flush_denormals guard;
  const detail::row_memory at{rows.data(), gradient.data(), rows.size(), width};
  if (options.kind == optimizer::adam)
    return adam_step_rows(at, steps, options);
  const auto constants = detail::constants_of(options);
  switch (options.kind) {
  case optimizer::sgd: return sgd_rows(at, constants);
  case optimizer::momentum: return momentum_rows(at, constants);
  default: return adagrad_rows(at, constants);
  }
}

} // namespace troupe::kernels
