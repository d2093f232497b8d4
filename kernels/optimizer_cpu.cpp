#include "kernels/optimizer.hpp"

#include "kernels/cpu_clones.hpp"
#include "kernels/flush_denormals.hpp"
#include "kernels/optimizer.inl.hpp"

#include <atomic>
#include <cassert>

namespace troupe::kernels {

namespace {

/// Access to memory that other threads read and write at the same time.
struct shared_access {
  // The spans of a shared step are writable; atomic_ref of a const float comes only with C++26.
  static float load(const float* from) {
    return std::atomic_ref<float>(const_cast<float&>(*from)).load(std::memory_order_relaxed);
  }
  static void store(float* to, float value) {
    std::atomic_ref<float>(*to).store(value, std::memory_order_relaxed);
  }
};

TROUPE_CPU_CLONES bool plain_step(const detail::step_memory& at, optimizer kind,
                                  const detail::step_constants& constants) {
  return detail::step_any<detail::plain_access>(at, kind, constants);
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
  return detail::step_any<shared_access>(
    {weights.data(), state.data(), weights.data(), state.data(), gradient.data(), gradient.size()},
    options.kind, detail::constants_of(options));
}

} // namespace troupe::kernels
