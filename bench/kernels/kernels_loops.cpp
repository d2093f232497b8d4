// Runs the loops that one would write first, compiled at -O3 for any x86-64.
#include "bench/kernels/kernel_contest.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace troupe::bench {

void add_loops(kernel_contest& contest, kernel_memory& m) {
  const auto add_loop = [&](const char* name, double bytes, std::function<void()> run) {
    contest.add(name, "loop", bytes, std::move(run));
  };
  float *const x = m.v[0].data(), *const y = m.v[1].data();
  const std::size_t n = m.count;
  float *const a = m.v[2].data(), *const b = m.v[3].data(), *const out = m.v[7].data();
  add_loop("sum of 2", 4 * 3, [=] {
    for (std::size_t i = 0; i < n; ++i)
      out[i] = x[i] + y[i];
  });
  add_loop("sum of 4", 4 * 5, [=] {
    for (std::size_t i = 0; i < n; ++i)
      out[i] = x[i] + y[i] + a[i] + b[i];
  });
  add_loop("add", 4 * 3, [=] {
    for (std::size_t i = 0; i < n; ++i)
      y[i] += x[i];
  });
  add_loop("axpy", 4 * 3, [=] {
    for (std::size_t i = 0; i < n; ++i)
      y[i] += -1e-6f * x[i];
  });
  add_loop("scale", 4 * 2, [=] {
    for (std::size_t i = 0; i < n; ++i)
      x[i] *= -1.0f;
  });
  add_loop("clip", 4 * 2, [=] {
    for (std::size_t i = 0; i < n; ++i)
      x[i] = std::min(std::max(x[i], -0.999f), 0.999f);
  });
  add_loop("dot", 4 * 2, [=, &m] {
    double total = 0;
    for (std::size_t i = 0; i < n; ++i)
      total += double{x[i]} * double{y[i]};
    m.result += total;
  });
  add_loop("norm", 4, [=, &m] {
    double total = 0;
    for (std::size_t i = 0; i < n; ++i)
      total += double{x[i]} * double{x[i]};
    m.result += std::sqrt(total);
  });
  add_loop("first_non_finite", 4, [=, &m] {
    std::size_t i = 0;
    while (i < n && std::isfinite(x[i]))
      ++i;
    m.result += static_cast<double>(i);
  });
  // These read and write as much as a reduction, and as a step with two states.
  add_loop("read one vector", 4, [=, &m] {
    std::uint32_t seen = 0;
    for (std::size_t i = 0; i < n; ++i)
      seen |= std::bit_cast<std::uint32_t>(x[i]);
    m.result += seen;
  });
  float *const c = m.v[4].data(), *const d = m.v[5].data(), *const e = m.v[6].data();
  add_loop("read 4, write 3", 4 * 7 / 2.0, [=] {
    const std::size_t half = n / 2;
#pragma GCC ivdep
    for (std::size_t i = 0; i < half; ++i) {
      const float first = b[i] + c[i], second = b[half + i] + c[i];
      d[i] = a[i] + c[i], e[i] = first, e[half + i] = second;
    }
  });
}

} // namespace troupe::bench
