// Multiplies matrices on a device: by cuBLAS, which is loaded when it is needed, or by loops on an
// emulated device.
#pragma once

#include "kernels/devices/platform.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace troupe {

/// c = op(a) op(b), where op(a) is m x k and op(b) is k x n; op transposes, or is the identity. All
/// matrices are row-major and contiguous.
struct matrix_product {
  bool transpose_a = false, transpose_b = false;
  std::size_t m = 0, n = 0, k = 0;
};

class device_blas {
public:
  virtual ~device_blas() = default;
  /// Enqueues a product. All memory is of the stream's device. Errors: device_failed.
  virtual result<void> multiply(const kernels::stream& at, const matrix_product& what,
                                const float* a, const float* b, float* c) = 0;
};

/// Returns products for streams of this device. Errors: device_failed: cuBLAS is missing or fails.
result<std::unique_ptr<device_blas>> open_blas(const device_platform& on, std::uint32_t device);

} // namespace troupe
