#include "kernels/half.hpp"

#include "kernels/half.inl.hpp"

#include <cassert>
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/half_cpu.cpp"
#include "hwy/foreach_target.h"

#include "kernels/simd.inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace troupe::kernels::HWY_NAMESPACE {
namespace {

// Branchless integer code, which the compiler vectorises as well as hand-written code.

void all_to_fp16(const float* x, std::uint16_t* y, std::size_t count) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i)
    y[i] = detail::fp16_of(x[i]);
}

void all_from_fp16(const std::uint16_t* x, float* y, std::size_t count) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i)
    y[i] = detail::float_of_fp16(x[i]);
}

void all_to_bf16(const float* x, std::uint16_t* y, std::size_t count) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i)
    y[i] = detail::bf16_of(x[i]);
}

void all_from_bf16(const std::uint16_t* x, float* y, std::size_t count) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i)
    y[i] = detail::float_of_bf16(x[i]);
}

} // namespace
} // namespace troupe::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace troupe::kernels {

namespace {

HWY_EXPORT(all_to_fp16);
HWY_EXPORT(all_from_fp16);
HWY_EXPORT(all_to_bf16);
HWY_EXPORT(all_from_bf16);

} // namespace

void to_fp16(std::span<const float> x, std::span<std::uint16_t> y) {
  assert(x.size() == y.size());
  HWY_DYNAMIC_DISPATCH(all_to_fp16)(x.data(), y.data(), x.size());
}

void from_fp16(std::span<const std::uint16_t> x, std::span<float> y) {
  assert(x.size() == y.size());
  HWY_DYNAMIC_DISPATCH(all_from_fp16)(x.data(), y.data(), x.size());
}

void to_bf16(std::span<const float> x, std::span<std::uint16_t> y) {
  assert(x.size() == y.size());
  HWY_DYNAMIC_DISPATCH(all_to_bf16)(x.data(), y.data(), x.size());
}

void from_bf16(std::span<const std::uint16_t> x, std::span<float> y) {
  assert(x.size() == y.size());
  HWY_DYNAMIC_DISPATCH(all_from_bf16)(x.data(), y.data(), x.size());
}

} // namespace troupe::kernels

#endif
