#include "kernels/devices/blas.hpp"

#include "kernels/devices/shared_library.hpp"

#include "fmt/core.h"

#include <algorithm>

#if defined(TROUPE_CUDA_FOUND)
  #include <cuda_runtime_api.h>
#endif

struct cublasContext;

namespace troupe {

namespace {

class emulated_blas final : public device_blas {
public:
  result<void> multiply(const kernels::stream& at, const matrix_product& what, const float* a,
                        const float* b, float* c) override {
    at.emulated->push([=] { work(what, a, b, c); });
    return {};
  }

private:
  static void work(const matrix_product& x, const float* a, const float* b, float* c) {
    for (std::size_t i = 0; i < x.m; ++i) {
      float* const row = c + i * x.n;
      std::fill_n(row, x.n, 0.0f);
      for (std::size_t l = 0; l < x.k; ++l) {
        const float factor = x.transpose_a ? a[l * x.m + i] : a[i * x.k + l];
        if (x.transpose_b)
          for (std::size_t j = 0; j < x.n; ++j)
            row[j] += factor * b[j * x.k + l];
        else
          for (std::size_t j = 0; j < x.n; ++j)
            row[j] += factor * b[l * x.n + j];
      }
    }
  }
};

/// The functions of cuBLAS's C interface used here. Each returns 0 or an error number.
struct cublas_api {
  int (*create)(cublasContext**) = nullptr;
  int (*destroy)(cublasContext*) = nullptr;
  int (*set_stream)(cublasContext*, CUstream_st*) = nullptr;
  int (*sgemm)(cublasContext*, int transpose_a, int transpose_b, int m, int n, int k,
               const float* alpha, const float* a, int lda, const float* b, int ldb,
               const float* beta, float* c, int ldc) = nullptr;

  static result<cublas_api> load() {
    const auto library =
      shared_library::open({"libcublas.so.13", "libcublas.so.12", "libcublas.so"});
    if (!library)
      return {errc::device_failed, "cuBLAS cannot be loaded: " + library.error().text};
    cublas_api api;
    const auto bind = [&](auto*& function, const char* name) {
      return library->bind(function, name);
    };
    for (const auto& bound :
         {bind(api.create, "cublasCreate_v2"), bind(api.destroy, "cublasDestroy_v2"),
          bind(api.set_stream, "cublasSetStream_v2"), bind(api.sgemm, "cublasSgemm_v2")})
      if (!bound)
        return bound.error();
    return api;
  }
};

class cublas final : public device_blas {
public:
  cublas(const cublas_api& api, cublasContext* context) : api_(api), context_(context) {}
  cublas(const cublas&) = delete;
  cublas& operator=(const cublas&) = delete;
  ~cublas() override { api_.destroy(context_); }

  result<void> multiply(const kernels::stream& at, const matrix_product& x, const float* a,
                        const float* b, float* c) override {
    // cuBLAS is column-major: it sees row-major matrices transposed, and c' = b' a'.
    const float one = 1.0f, zero = 0.0f;
#if defined(TROUPE_CUDA_FOUND)
    cudaSetDevice(
      at.device); // As launches do: this thread may have released memory of another device.
#endif
    const int m = static_cast<int>(x.m), n = static_cast<int>(x.n), k = static_cast<int>(x.k);
    int error = api_.set_stream(context_, at.cuda);
    if (!error)
      error = api_.sgemm(context_, x.transpose_b, x.transpose_a, n, m, k, &one, b,
                         x.transpose_b ? k : n, a, x.transpose_a ? m : k, &zero, c, n);
    if (error)
      return {errc::device_failed, fmt::format("cuBLAS failed at a product: error {}", error)};
    return {};
  }

private:
  cublas_api api_;
  cublasContext* context_;
};

} // namespace

result<std::unique_ptr<device_blas>> open_blas(const device_platform& on,
                                               [[maybe_unused]] std::uint32_t device) {
  if (on.emulated())
    return std::unique_ptr<device_blas>{std::make_unique<emulated_blas>()};
  const auto api = cublas_api::load();
  if (!api)
    return api.error();
#if defined(TROUPE_CUDA_FOUND)
  cudaSetDevice(static_cast<int>(device)); // cuBLAS stays on the device on which it starts.
#endif
  cublasContext* context = nullptr;
  if (const int error = api->create(&context))
    return {errc::device_failed, fmt::format("cuBLAS does not start: error {}", error)};
  return std::unique_ptr<device_blas>{std::make_unique<cublas>(*api, context)};
}

} // namespace troupe
