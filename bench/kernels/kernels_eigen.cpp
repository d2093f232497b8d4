// Eigen's versions of the kernels, compiled for the CPU of this machine. Its sums are of float32.
#include "bench/kernels/kernel_contest.hpp"

#include <Eigen/Core>

namespace troupe::bench {

void add_eigen(kernel_contest& contest, kernel_memory& m) {
  const auto add_expression = [&](const char* name, double bytes, std::function<void()> run) {
    contest.add(name, "eigen", bytes, std::move(run));
  };
  const auto array = [&m](std::size_t i) {
    return Eigen::Map<Eigen::ArrayXf, Eigen::Aligned64>(m.v[i].data(),
                                                        static_cast<Eigen::Index>(m.count));
  };
  auto x = array(0), y = array(1), a = array(2), b = array(3), total = array(7);
  add_expression("sum of 2", 4 * 3, [=]() mutable { total = x + y; });
  add_expression("sum of 4", 4 * 5, [=]() mutable { total = x + y + a + b; });
  add_expression("add", 4 * 3, [=]() mutable { y += x; });
  add_expression("axpy", 4 * 3, [=]() mutable { y += -1e-6f * x; });
  add_expression("scale", 4 * 2, [=]() mutable { x *= -1.0f; });
  add_expression("clip", 4 * 2, [=]() mutable { x = x.max(-0.999f).min(0.999f); });
  add_expression("dot", 4 * 2, [=, &m] { m.result += x.matrix().dot(y.matrix()); });
  add_expression("norm", 4, [=, &m] { m.result += x.matrix().norm(); });
  add_expression("first_non_finite", 4, [=, &m] { m.result += x.isFinite().all(); });
}

} // namespace troupe::bench
