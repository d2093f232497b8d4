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

} // namespace troupe::kernels
