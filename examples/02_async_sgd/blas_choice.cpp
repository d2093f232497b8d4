#include "examples/02_async_sgd/blas_choice.hpp"

#include <cblas.h>

#include <cstdlib>
#include <string_view>
#include <unistd.h>

namespace async_sgd {

void choose_blas_kernels(char** argv) {
#if defined(__x86_64__)
  constexpr const char* variable = "OPENBLAS_CORETYPE";
  // The CPU of OpenBLAS's SSE3 kernels.
  if (std::getenv(variable) || std::string_view(openblas_get_corename()) != "Prescott")
    return;
  __builtin_cpu_init();
  const char* core = nullptr;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")
      && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    core = "SkylakeX";
  else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    core = "Haswell";
  if (!core)
    return;
  setenv(variable, core, 0);
  execv("/proc/self/exe", argv); // Where this fails, training is slow but right.
#else
  static_cast<void>(argv);
#endif
}

} // namespace async_sgd
