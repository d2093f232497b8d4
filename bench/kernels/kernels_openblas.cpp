// OpenBLAS's versions of the kernels, on one thread. Its sdot and snrm2 add up in float32.
#include "bench/kernels/kernel_contest.hpp"

#include <cblas.h>

namespace troupe::bench {

void add_openblas(kernel_contest& contest, kernel_memory& m) {
  openblas_set_num_threads(1);
  const auto add_call = [&](const char* name, double bytes, std::function<void()> run) {
    contest.add(name, "openblas", bytes, std::move(run));
  };
  float *const x = m.v[0].data(), *const y = m.v[1].data();
  const auto n = static_cast<blasint>(m.count);
  add_call("add", 4 * 3, [=] { cblas_saxpy(n, 1.0f, x, 1, y, 1); });
  add_call("axpy", 4 * 3, [=] { cblas_saxpy(n, -1e-6f, x, 1, y, 1); });
  add_call("scale", 4 * 2, [=] { cblas_sscal(n, -1.0f, x, 1); });
  add_call("dot", 4 * 2, [=, &m] { m.result += cblas_sdot(n, x, 1, y, 1); });
  add_call("norm", 4, [=, &m] { m.result += cblas_snrm2(n, x, 1); });
}

} // namespace troupe::bench
