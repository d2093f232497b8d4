#include "kernels/sparsify.hpp"

#include "kernels/sparsify.inl.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstring>
#include <functional>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/sparsify_cpu.cpp"
#include "hwy/foreach_target.h"

#include "kernels/simd.inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace troupe::kernels::HWY_NAMESPACE {
namespace {

void add_to(float* v, const float* x, std::size_t count) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i)
    v[i] += x[i];
}

/// Calls body(index, magnitude) for each element of at least `least`, in order. These are few.
template <class Body>
HWY_INLINE void for_each_large(const float* v, std::size_t count, std::uint32_t least,
                               const Body& body) {
  constexpr floats d;
  constexpr hn::RebindToSigned<floats> as_bits;
  const auto sizes = hn::Set(as_bits, 0x7fffffff);
  const auto below = hn::Set(as_bits, static_cast<std::int32_t>(least) - 1);
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) {
    const auto size = hn::And(hn::BitCast(as_bits, hn::LoadU(d, v + i)), sizes);
    const auto is_large = hn::Gt(size, below);
    if (hn::AllFalse(as_bits, is_large))
      continue;
    std::uint8_t bytes[8] = {};
    hn::StoreMaskBits(as_bits, is_large, bytes);
    std::uint32_t which = 0;
    std::memcpy(&which, bytes, sizeof which);
    for (; which != 0; which &= which - 1) {
      const std::size_t at = i + static_cast<std::size_t>(std::countr_zero(which));
      body(at, detail::magnitude(v[at]));
    }
  }
  for (; i < count; ++i)
    if (detail::magnitude(v[i]) >= least)
      body(i, detail::magnitude(v[i]));
}

void count_large(const float* v, std::size_t count, std::uint32_t least,
                 detail::magnitude_counts& into) {
  for_each_large(v, count, least, [&](std::size_t, std::uint32_t size) HWY_ATTR {
    ++into[size >> detail::magnitude_shifts[0]];
  });
}

/// Counts the elements whose upper bits are `prefix`, by the bits below these.
void count_within(const float* v, std::size_t count, std::uint32_t prefix, int prefix_shift,
                  int shift, detail::magnitude_counts& into) {
  const std::uint32_t mask = (1u << (prefix_shift - shift)) - 1;
  const auto least = prefix << prefix_shift;
  for_each_large(v, count, least, [&](std::size_t, std::uint32_t size) HWY_ATTR {
    if (size >> prefix_shift == prefix)
      ++into[(size >> shift) & mask];
  });
}

void take(float* v, std::size_t count, detail::selection which, std::uint32_t* places,
          float* values) {
  for_each_large(v, count, which.least, [&](std::size_t i, std::uint32_t size) HWY_ATTR {
    if (size == which.least) {
      if (which.of_least == 0)
        return;
      --which.of_least;
    }
    *places++ = static_cast<std::uint32_t>(i);
    *values++ = v[i];
    v[i] = 0.0f;
  });
}

} // namespace
} // namespace troupe::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace troupe::kernels {

namespace {

HWY_EXPORT(add_to);
HWY_EXPORT(count_large);
HWY_EXPORT(count_within);
HWY_EXPORT(take);

/// Returns a magnitude that about 2 k elements reach, by a sample, so that most are skipped.
std::uint32_t guess(std::span<const float> v, std::size_t k) {
  constexpr std::size_t sample_size = 1024;
  std::array<std::uint32_t, sample_size> sample;
  if (v.size() < 16 * sample_size)
    return 0;
  for (std::size_t i = 0; i < sample_size; ++i) // The stride is odd, so that no period of 2^j is
                                                // sampled.
    sample[i] = detail::magnitude(v[i * ((v.size() / sample_size) | 1) % v.size()]);
  const std::size_t rank = 2 * k * sample_size / v.size() + 8;
  if (rank >= sample_size / 2)
    return 0;
  std::nth_element(sample.begin(), sample.begin() + rank, sample.end(), std::ranges::greater{});
  return sample[rank];
}

/// Returns the bin of the k-th largest; k becomes its rank within that bin.
std::uint32_t bin_of(const detail::magnitude_counts& counts, std::size_t& k) {
  std::size_t bin = detail::magnitude_bins - 1;
  for (; counts[bin] < k; --bin)
    k -= counts[bin];
  return static_cast<std::uint32_t>(bin);
}

/// Requires: 0 < k <= v.size().
detail::selection select(std::span<const float> v, std::size_t k) {
  detail::magnitude_counts counts{};
  // Rounded to whole bins, so that every counted bin is complete.
  const std::uint32_t guessed = guess(v, k) >> detail::magnitude_shifts[0]
                                                 << detail::magnitude_shifts[0];
  HWY_DYNAMIC_DISPATCH(count_large)(v.data(), v.size(), guessed, counts);
  std::size_t large = 0;
  for (const auto each : counts)
    large += each;
  if (large < k) {
    counts = {};
    HWY_DYNAMIC_DISPATCH(count_large)(v.data(), v.size(), 0, counts);
  }
  std::uint32_t prefix = bin_of(counts, k);
  for (std::size_t round = 1; round < std::size(detail::magnitude_shifts); ++round) {
    counts = {};
    HWY_DYNAMIC_DISPATCH(count_within)
    (v.data(), v.size(), prefix, detail::magnitude_shifts[round - 1],
     detail::magnitude_shifts[round], counts);
    prefix = prefix << (detail::magnitude_shifts[round - 1] - detail::magnitude_shifts[round])
             | bin_of(counts, k);
  }
  return {prefix, k};
}

/// Calls body(j, place) for each of the k places.
template <class Body>
void for_each_random(std::size_t count, std::size_t k, std::uint64_t seed, Body body) {
  const auto key = detail::random_key(seed);
  std::uint64_t first = 0;
  for (std::size_t j = 0; j < k; ++j) {
    const std::uint64_t end = detail::stretch_begin(j + 1, count, k);
    body(j, static_cast<std::size_t>(
              detail::drawn_place(first, end, key, static_cast<std::uint32_t>(j))));
    first = end;
  }
}

} // namespace

void top_k(std::span<const float> x, std::span<float> residual, std::span<std::uint32_t> places,
           std::span<float> values) {
  assert(residual.size() == x.size() && places.size() == values.size());
  assert(places.size() <= x.size());
  HWY_DYNAMIC_DISPATCH(add_to)(residual.data(), x.data(), x.size());
  if (!places.empty())
    HWY_DYNAMIC_DISPATCH(take)
  (residual.data(), residual.size(), select(residual, places.size()), places.data(), values.data());
}

void random_k(std::span<const float> x, std::span<float> residual, std::uint64_t seed,
              std::span<float> values) {
  assert(residual.size() == x.size() && values.size() <= x.size());
  HWY_DYNAMIC_DISPATCH(add_to)(residual.data(), x.data(), x.size());
  for_each_random(x.size(), values.size(), seed, [&](std::size_t j, std::size_t place) {
    values[j] = residual[place];
    residual[place] = 0.0f;
  });
}

void put_random_k(std::span<const float> values, std::uint64_t seed, std::span<float> y) {
  assert(values.size() <= y.size());
  std::fill(y.begin(), y.end(), 0.0f);
  for_each_random(y.size(), values.size(), seed,
                  [&](std::size_t j, std::size_t place) { y[place] = values[j]; });
}

} // namespace troupe::kernels

#endif
