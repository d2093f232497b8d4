// nvcc: -ftz=true
#include "kernels/launch.inl.hpp"
#include "kernels/optimizer.hpp"
#include "kernels/optimizer.inl.hpp"

#include <cassert>

namespace troupe::kernels {

namespace {

template <optimizer_kind Kind>
struct step_body : flushing_denormals {
  detail::step_memory at;
  detail::step_constants constants;
  std::uint32_t* not_finite;

  TROUPE_HD void operator()(std::size_t i) const {
    constexpr std::size_t states = state_per_weight(Kind);
    constexpr std::uint32_t infinity_bits = 0x7f800000;
    const float gradient = at.gradient[i];
    if ((std::bit_cast<std::uint32_t>(gradient) & infinity_bits) == infinity_bits)
      *not_finite = 1; // All threads that write it write the same value.
    detail::element old{at.weights[i], 0.0f, 0.0f};
    if constexpr (states >= 1)
      old.first = at.state[i];
    if constexpr (states >= 2)
      old.second = at.state[at.count + i];
    const detail::element next = detail::stepped<Kind>(old, gradient, constants);
    at.new_weights[i] = next.weight;
    if constexpr (states >= 1)
      at.new_state[i] = next.first;
    if constexpr (states >= 2)
      at.new_state[at.count + i] = next.second;
  }
};

} // namespace

void optimizer_step(stream at, std::span<float> new_weights, std::span<float> new_state,
                    std::span<const float> weights, std::span<const float> state,
                    std::span<const float> gradient, const step_options& options,
                    std::uint32_t* not_finite) {
  assert(weights.size() == gradient.size() && new_weights.size() == gradient.size());
  assert(state.size() == gradient.size() * state_per_weight(options.kind));
  assert(new_state.size() == state.size());
  const detail::step_memory memory{new_weights.data(), new_state.data(), weights.data(),
                                   state.data(),       gradient.data(),  gradient.size()};
  const auto constants = detail::constants_of(options);
  detail::with_kind(options.kind, [&]<optimizer_kind Kind>() {
    launch_elements(at, memory.count, step_body<Kind>{{}, memory, constants, not_finite});
  });
}

} // namespace troupe::kernels
