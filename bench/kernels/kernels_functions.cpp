// Server functions with the formulas of built-in steps, called as a shard calls them: on a copy of
// weights and state, and after a check of the gradient. GB/s counts the bytes of the built-in step,
// so equal figures are equal times.
#include "actors/tables/server_functions.hpp"
#include "bench/kernels/kernel_contest.hpp"
#include "kernels/vector_ops.hpp"

#include <algorithm>
#include <span>

namespace troupe::bench {

namespace {

bool sgd_function(const step_info& info, std::span<float> weights, std::span<float>,
                  std::span<const float> gradient) {
  const float factor = info.rate * info.scale;
  for (std::size_t i = 0; i < weights.size(); ++i)
    weights[i] -= factor * gradient[i];
  return true;
}

bool momentum_function(const step_info& info, std::span<float> weights, std::span<float> state,
                       std::span<const float> gradient) {
  const float rate = info.rate, scale = info.scale, mu = info.parameters[0];
  for (std::size_t i = 0; i < weights.size(); ++i) {
    state[i] = mu * state[i] + scale * gradient[i];
    weights[i] -= rate * state[i];
  }
  return true;
}

void add_function(kernel_contest& contest, kernel_memory& m, const char* name,
                  server_function function, std::size_t states) {
  static constexpr float mu[] = {0.9f};
  const auto step = [&m, states, call = function]() mutable {
    asm volatile("" : "+r"(call)); // The store does not know the function either.
    const std::span<float> weights{m.v[5]}, state = std::span{m.v[6]}.first(states * m.count);
    std::ranges::copy(m.v[2], weights.begin());
    std::copy_n(m.v[3].begin(), state.size(), state.begin());
    m.result += static_cast<double>(kernels::first_non_finite(m.v[4]));
    m.result +=
      call({.table = {}, .step = 9, .rate = 1e-3f, .parameters = mu}, weights, state, m.v[4]);
  };
  contest.add(name, "function", 4.0 * (3.0 + 2.0 * static_cast<double>(states)), step);
}

} // namespace

void add_functions(kernel_contest& contest, kernel_memory& m) {
  add_function(contest, m, "sgd", sgd_function, 0);
  add_function(contest, m, "momentum", momentum_function, 1);
}

} // namespace troupe::bench
