// Server functions with the formulas of built-in steps, called as a shard calls them: block by
// block on a copy of weights and state, and after a check of the gradient. GB/s counts the bytes of
// the built-in step, so equal figures are equal times.
#include "actors/tables/server_functions.hpp"
#include "bench/kernels/kernel_contest.hpp"
#include "kernels/vector_ops.hpp"

#include <algorithm>
#include <span>

namespace troupe::bench {

namespace {

constexpr std::size_t block_floats = (1 << 20) / sizeof(float); ///< The largest block of a table.

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
    for (std::size_t first = 0; first < m.count; first += block_floats) {
      const std::size_t count = std::min(block_floats, m.count - first);
      const auto part = [&](std::size_t i, std::size_t floats) {
        return std::span{m.v[i]}.subspan(first, floats);
      };
      const auto weights = part(5, count), state = part(6, states * count);
      std::ranges::copy(part(2, count), weights.begin());
      std::ranges::copy(part(3, states * count), state.begin());
      m.result += static_cast<double>(kernels::first_non_finite(part(4, count)));
      m.result += call({.table = {}, .step = 9, .rate = 1e-3f, .parameters = mu}, weights, state,
                       part(4, count));
    }
  };
  contest.add(name, "function", 4.0 * (3.0 + 2.0 * static_cast<double>(states)), step);
}

} // namespace

void add_functions(kernel_contest& contest, kernel_memory& m) {
  add_function(contest, m, "sgd", sgd_function, 0);
  add_function(contest, m, "momentum", momentum_function, 1);
}

} // namespace troupe::bench
