// Troupe's own kernels, as Troupe calls them. Steps write to other memory than they read, as a
// shard's do; all else works in place.
#include "bench/kernels/kernel_contest.hpp"
#include "kernels/optimizer.hpp"
#include "kernels/vector_ops.hpp"

namespace troupe::bench {

namespace {

using namespace kernels;

void add_step(kernel_contest& contest, kernel_memory& m, const char* name, optimizer_kind kind) {
  const std::size_t states = state_per_weight(kind);
  // Two state vectors lie in one: they and the weights then have half the length.
  const auto step = [&m, kind, states] {
    const std::size_t n = states == 2 ? m.count / 2 : m.count;
    const auto part = [&](std::size_t i, std::size_t count) {
      return std::span{m.v[i]}.first(count);
    };
    m.result += optimizer_step(part(5, n), part(6, states * n), part(2, n), part(3, states * n),
                               part(4, n), {.kind = kind, .rate = 1e-3f, .step = 9});
  };
  const double share = states == 2 ? 0.5 : 1.0;
  contest.add(name, "troupe", share * 4.0 * (3.0 + 2.0 * static_cast<double>(states)), step);
}

} // namespace

void add_troupe(kernel_contest& contest, kernel_memory& m) {
  const auto add_kernel = [&](const char* name, double bytes, std::function<void()> run) {
    contest.add(name, "troupe", bytes, std::move(run));
  };
  auto &x = m.v[0], &y = m.v[1];
  const auto sum_of = [&m](int inputs) {
    return [&m, all = std::vector<std::span<const float>>(m.v.begin(), m.v.begin() + inputs)] {
      kernels::sum(m.v[7], all);
    };
  };
  add_kernel("sum of 2", 4 * 3, sum_of(2));
  add_kernel("sum of 4", 4 * 5, sum_of(4));
  add_kernel("sum of 7", 4 * 8, sum_of(7));
  add_kernel("add", 4 * 3, [&] { kernels::add(y, x); });
  add_kernel("axpy", 4 * 3, [&] { axpy(y, -1e-6f, x); });
  add_kernel("scale", 4 * 2, [&] { scale(x, -1.0f); });
  add_kernel("clip", 4 * 2, [&] { clip(x, 0.999f); });
  add_kernel("dot", 4 * 2, [&] { m.result += dot(x, y); });
  add_kernel("norm", 4, [&] { m.result += norm(x); });
  add_kernel("first_non_finite", 4, [&] { m.result += static_cast<double>(first_non_finite(x)); });
  add_step(contest, m, "sgd", optimizer_kind::sgd);
  add_step(contest, m, "momentum", optimizer_kind::momentum);
  add_step(contest, m, "nesterov", optimizer_kind::nesterov);
  add_step(contest, m, "adagrad", optimizer_kind::adagrad);
  add_step(contest, m, "adam", optimizer_kind::adam);
  add_step(contest, m, "adamw", optimizer_kind::adamw);
  add_step(contest, m, "ftrl", optimizer_kind::ftrl);
}

} // namespace troupe::bench
