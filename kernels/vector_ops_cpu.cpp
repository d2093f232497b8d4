// Shows the form of every kernel for CPUs: foreach_target includes this file once for each target,
// and a call goes to the best target of the present CPU.
#include "kernels/vector_ops.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/vector_ops_cpu.cpp"
#include "hwy/foreach_target.h"

#include "kernels/simd.inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace troupe::kernels::HWY_NAMESPACE {
namespace {

/// `apart`: the total replaces no input. A long total is written past the caches, which then need
/// not fetch lines before they are overwritten.
void sum_all(float* total, const std::span<const float>* inputs, std::size_t inputs_count,
             std::size_t count, bool apart) {
  const bool streamed = apart && count >= streamed_min;
  constexpr floats d;
  constexpr std::size_t width = hn::MaxLanes(d), line_bytes = 64;
  const auto sum_of = [=](auto tag, std::size_t i) HWY_ATTR {
    auto value = hn::LoadU(tag, inputs[0].data() + i);
    for (std::size_t k = 1; k < inputs_count; ++k)
      value = hn::Add(value, hn::LoadU(tag, inputs[k].data() + i));
    hn::StoreU(value, tag, total + i);
  };
  std::size_t begin = 0;
  if (streamed) { // Whole lines from their beginning.
    const std::size_t off = reinterpret_cast<std::uintptr_t>(total) % line_bytes;
    begin = std::min(count, (line_bytes - off) % line_bytes / sizeof(float));
    for_each_vector(d, 0, begin, sum_of);
  }
  // Four vectors at a time: with one, too few loads are in flight.
  for (; begin + 4 * width <= count; begin += 4 * width) {
    const float* x = inputs[0].data() + begin;
    auto a = hn::LoadU(d, x), b = hn::LoadU(d, x + width);
    auto e = hn::LoadU(d, x + 2 * width), f = hn::LoadU(d, x + 3 * width);
    for (std::size_t k = 1; k < inputs_count; ++k) {
      x = inputs[k].data() + begin;
      a = hn::Add(a, hn::LoadU(d, x)), b = hn::Add(b, hn::LoadU(d, x + width));
      e = hn::Add(e, hn::LoadU(d, x + 2 * width)), f = hn::Add(f, hn::LoadU(d, x + 3 * width));
    }
    float* const to = total + begin;
    if (streamed) {
      hn::Stream(a, d, to), hn::Stream(b, d, to + width);
      hn::Stream(e, d, to + 2 * width), hn::Stream(f, d, to + 3 * width);
    } else {
      hn::StoreU(a, d, to), hn::StoreU(b, d, to + width);
      hn::StoreU(e, d, to + 2 * width), hn::StoreU(f, d, to + 3 * width);
    }
  }
  for_each_vector(d, begin, count, sum_of);
  if (streamed)
    hwy::FlushStream();
}

void add_all(float* sum, const float* x, std::size_t count) {
  for_each_vector(count, [=](auto d, std::size_t i) HWY_ATTR {
    hn::StoreU(hn::Add(hn::LoadU(d, sum + i), hn::LoadU(d, x + i)), d, sum + i);
  });
}

void axpy_all(float* y, float a, const float* x, std::size_t count) {
  for_each_vector(count, [=](auto d, std::size_t i) HWY_ATTR {
    const auto product = hn::Mul(hn::Set(d, a), hn::LoadU(d, x + i));
    hn::StoreU(hn::Add(hn::LoadU(d, y + i), product), d, y + i);
  });
}

void scale_all(float* x, float a, std::size_t count) {
  for_each_vector(count, [=](auto d, std::size_t i) HWY_ATTR {
    hn::StoreU(hn::Mul(hn::LoadU(d, x + i), hn::Set(d, a)), d, x + i);
  });
}

void clip_all(float* x, float limit, std::size_t count) {
  for_each_vector(count, [=](auto d, std::size_t i) HWY_ATTR {
    hn::StoreU(clamped(d, hn::LoadU(d, x + i), limit), d, x + i);
  });
}

double products(const float* x, const float* y, std::size_t count) {
  const auto product = [=](auto d, std::size_t i) HWY_ATTR {
    return hn::Mul(load_doubles(d, x + i), load_doubles(d, y + i));
  };
  return sum_in_lanes(count, product, x, y);
}

double squares(const float* x, std::size_t count) {
  const auto square = [=](auto d, std::size_t i) HWY_ATTR {
    const auto value = load_doubles(d, x + i);
    return hn::Mul(value, value);
  };
  return sum_in_lanes(count, square, x);
}

/// Returns the number of elements known to be finite: all before the first stretch that is not.
std::size_t finite_prefix(const float* x, std::size_t count) {
  // Each stretch is tested as a whole. 4 KiB is long enough to hide the branch, and short enough to
  // be searched again from the L1 cache.
  const bool ahead = asks_ahead();
  for (std::size_t begin = 0; begin < count; begin += read_stretch) {
    prefetch_pages(x, begin, count);
    finite_watch watch;
    for_each_vector(floats{}, begin, std::min(begin + read_stretch, count),
                    [&watch, x, ahead](auto d, std::size_t i) HWY_ATTR {
                      if (ahead)
                        prefetch_ahead(x + i);
                      watch.note(d, hn::LoadU(d, x + i));
                    });
    if (!watch.all_finite())
      return begin;
  }
  return count;
}

} // namespace
} // namespace troupe::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace troupe::kernels {

namespace {

HWY_EXPORT(sum_all);
HWY_EXPORT(add_all);
HWY_EXPORT(axpy_all);
HWY_EXPORT(scale_all);
HWY_EXPORT(clip_all);
HWY_EXPORT(products);
HWY_EXPORT(squares);
HWY_EXPORT(finite_prefix);

bool is_finite(float x) { return (std::bit_cast<std::uint32_t>(x) & 0x7fffffff) < 0x7f800000; }

} // namespace

void sum(std::span<float> total, std::span<const std::span<const float>> inputs) {
  assert(std::ranges::all_of(inputs, [&](const auto& x) { return x.size() == total.size(); }));
  if (inputs.empty())
    return (void)std::ranges::fill(total, 0.0f);
  const bool apart =
    std::ranges::none_of(inputs, [&](const auto& x) { return x.data() == total.data(); });
  HWY_DYNAMIC_DISPATCH(sum_all)
  (total.data(), inputs.data(), inputs.size(), total.size(), apart);
}

void add(std::span<float> sum, std::span<const float> x) {
  assert(sum.size() == x.size());
  HWY_DYNAMIC_DISPATCH(add_all)(sum.data(), x.data(), x.size());
}

void axpy(std::span<float> y, float a, std::span<const float> x) {
  assert(y.size() == x.size());
  HWY_DYNAMIC_DISPATCH(axpy_all)(y.data(), a, x.data(), x.size());
}

void scale(std::span<float> x, float a) { HWY_DYNAMIC_DISPATCH(scale_all)(x.data(), a, x.size()); }

void clip(std::span<float> x, float limit) {
  assert(limit >= 0.0f);
  HWY_DYNAMIC_DISPATCH(clip_all)(x.data(), limit, x.size());
}

float clip_by_norm(std::span<float> x, float limit) {
  assert(limit > 0.0f);
  const double length = norm(x);
  if (!(length > limit))
    return 1.0f;
  const auto factor = static_cast<float>(limit / length);
  scale(x, factor);
  return factor;
}

double dot(std::span<const float> x, std::span<const float> y) {
  assert(x.size() == y.size());
  return HWY_DYNAMIC_DISPATCH(products)(x.data(), y.data(), x.size());
}

double squared_norm(std::span<const float> x) {
  return HWY_DYNAMIC_DISPATCH(squares)(x.data(), x.size());
}

double norm(std::span<const float> x) { return std::sqrt(squared_norm(x)); }

std::size_t first_non_finite(std::span<const float> x) {
  const auto rest = x.subspan(HWY_DYNAMIC_DISPATCH(finite_prefix)(x.data(), x.size()));
  const auto found = std::ranges::find_if_not(rest, is_finite);
  return static_cast<std::size_t>(found - rest.begin()) + x.size() - rest.size();
}

} // namespace troupe::kernels

#endif
