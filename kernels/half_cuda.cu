#include "kernels/half.hpp"
#include "kernels/half.inl.hpp"
#include "kernels/launch.inl.hpp"

#include <cassert>

namespace troupe::kernels {

namespace {

struct to_fp16_body {
  const float* x;
  std::uint16_t* y;
  TROUPE_HD void operator()(std::size_t i) const { y[i] = detail::fp16_of(x[i]); }
};

struct from_fp16_body {
  const std::uint16_t* x;
  float* y;
  TROUPE_HD void operator()(std::size_t i) const { y[i] = detail::float_of_fp16(x[i]); }
};

struct to_bf16_body {
  const float* x;
  std::uint16_t* y;
  TROUPE_HD void operator()(std::size_t i) const { y[i] = detail::bf16_of(x[i]); }
};

struct from_bf16_body {
  const std::uint16_t* x;
  float* y;
  TROUPE_HD void operator()(std::size_t i) const { y[i] = detail::float_of_bf16(x[i]); }
};

} // namespace

void to_fp16(stream at, std::span<const float> x, std::span<std::uint16_t> y) {
  assert(x.size() == y.size());
  launch_elements(at, x.size(), to_fp16_body{x.data(), y.data()});
}

void from_fp16(stream at, std::span<const std::uint16_t> x, std::span<float> y) {
  assert(x.size() == y.size());
  launch_elements(at, x.size(), from_fp16_body{x.data(), y.data()});
}

void to_bf16(stream at, std::span<const float> x, std::span<std::uint16_t> y) {
  assert(x.size() == y.size());
  launch_elements(at, x.size(), to_bf16_body{x.data(), y.data()});
}

void from_bf16(stream at, std::span<const std::uint16_t> x, std::span<float> y) {
  assert(x.size() == y.size());
  launch_elements(at, x.size(), from_bf16_body{x.data(), y.data()});
}

} // namespace troupe::kernels
