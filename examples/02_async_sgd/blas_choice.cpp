#include "examples/02_async_sgd/blas_choice.hpp"

#include "base/system/own_executable.hpp"

#include <cblas.h>

#include <cstdlib>
#include <string_view>
#include <unistd.h>

namespace async_sgd {

namespace {

/// Returns the kernels that OpenBLAS should have chosen; null if its choice is right.
const char* better_kernels() {
#if defined(__x86_64__)
  // "Prescott" is the CPU of OpenBLAS's SSE3 kernels.
  if (std::string_view(openblas_get_corename()) != "Prescott")
    return nullptr;
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")
      && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return "SkylakeX";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return "Haswell";
#endif
  return nullptr;
}

/// Sets the variable unless it is set already. Returns true if it did.
bool set_new(const char* variable, const char* value) {
  return !std::getenv(variable) && value && setenv(variable, value, 0) == 0;
}

} // namespace

void choose_blas_kernels(char** argv) {
  const bool has_threads = set_new("OPENBLAS_NUM_THREADS", "1");
  const bool has_kernels = set_new("OPENBLAS_CORETYPE", better_kernels());
  if (has_threads || has_kernels) // If this fails, training is slow but right.
    execv(troupe::own_executable().c_str(), argv);
}

} // namespace async_sgd
