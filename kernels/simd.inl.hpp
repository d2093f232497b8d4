// Loops over spans, compiled once for each CPU target. Private to the .cpp files of this folder,
// which include it behind hwy/foreach_target.h. `vector_ops_cpu.cpp` shows the form.
//
// Uses Mul and Add: MulAdd rounds once on some targets and twice on others. No tag has more than 16
// lanes. Targets whose width is unknown to the compiler are left out: accumulators could not be
// arrays.
#if defined(TROUPE_KERNELS_SIMD) == defined(HWY_TARGET_TOGGLE) // Seen once for each target.
  #ifdef TROUPE_KERNELS_SIMD
    #undef TROUPE_KERNELS_SIMD
  #else
    #define TROUPE_KERNELS_SIMD
  #endif

  #include "hwy/highway.h"

  #include "hwy/cache_control.h"

  #include <algorithm>
  #include <cstddef>

HWY_BEFORE_NAMESPACE();
namespace troupe::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using floats = hn::CappedTag<float, 16>;

/// Calls body(tag, i) for the elements i, i + 1, ... of each whole vector of that tag, and then
/// with narrower tags for the rest. `body` is a generic lambda with HWY_ATTR.
template <class D, class Body>
HWY_INLINE void for_each_vector(D d, std::size_t i, std::size_t count, const Body& body) {
  for (; i + hn::MaxLanes(d) <= count; i += hn::MaxLanes(d))
    body(d, i);
  if constexpr (hn::MaxLanes(D{}) > 1)
    for_each_vector(hn::Half<D>{}, i, count, body);
}

template <class Body>
HWY_INLINE void for_each_vector(std::size_t count, const Body& body) {
  for_each_vector(floats{}, 0, count, body);
}

/// Returns min(max(value, -limit), limit), and NaN for NaN. Min and Max are not used: their choice
/// between a number and a NaN depends on the target.
template <class D>
HWY_INLINE hn::Vec<D> clamped(D d, hn::Vec<D> value, float limit) {
  const auto high = hn::Set(d, limit), low = hn::Set(d, -limit);
  const auto raised = hn::IfThenElse(hn::Lt(value, low), low, value);
  return hn::IfThenElse(hn::Gt(raised, high), high, raised);
}

/// Detects NaN and infinity in passing, without a branch for each vector.
class finite_watch {
  using wide = hn::RebindToSigned<floats>;

public:
  HWY_INLINE finite_watch() : seen_(hn::Zero(wide())) {}
  template <class D>
  HWY_INLINE void note(D d, hn::Vec<D> value) {
    constexpr hn::RebindToSigned<D> bits;
    // Carries into the sign if all exponent bits are set.
    const auto magnitude = hn::And(hn::BitCast(bits, value), hn::Set(bits, 0x7fffffff));
    const auto carried = hn::Add(magnitude, hn::Set(bits, 0x00800000));
    if constexpr (hn::MaxLanes(d) == hn::MaxLanes(floats{}))
      seen_ = hn::Or(seen_, carried);
    else
      narrow_ = narrow_ && hn::AllFalse(bits, hn::Lt(carried, hn::Zero(bits)));
  }
  HWY_INLINE bool all_finite() const {
    return narrow_ && hn::AllFalse(wide(), hn::Lt(seen_, hn::Zero(wide())));
  }

private:
  hn::Vec<wide> seen_;
  bool narrow_ = true;
};

/// Returns whether loops that only read prefetch. Intel's Ice Lake reads 64 MB a quarter faster
/// with it. AMD's Zen 4 reads at full speed on its own, and a sixth slower with it.
HWY_INLINE bool asks_ahead() {
  #if defined(__x86_64__)
  return !__builtin_cpu_is("amd");
  #else
  return true;
  #endif
}

/// Floats that a read-only loop takes between two calls of prefetch_pages(): 4 KiB.
constexpr std::size_t read_stretch = 1024;

/// Call before x[i] .. x[i + 1023] are read, i a multiple of 1024. Prefetches an equal amount of
/// the next eight pages, eight lines of each. Processors read ahead on their own, but separately
/// for each page and never beyond its end. Only several pages at a time keep enough lines in flight
/// for a core. Does not prefetch vectors that are mostly in a cache, where it only costs, or beyond
/// the end.
HWY_INLINE void prefetch_pages(const float* x, std::size_t i, std::size_t count) {
  constexpr std::size_t page = 1024, pages = 8, line = 16, long_min = std::size_t{1} << 20;
  constexpr std::size_t share = read_stretch / pages;
  const std::size_t within = i % (pages * page), next = i - within + pages * page;
  if (count < long_min || next + pages * page > count || !asks_ahead())
    return;
  const float* const at = x + next + within / pages;
  for (std::size_t k = 0; k < share; k += line)
    for (std::size_t p = 0; p < pages; ++p)
      hwy::Prefetch(at + p * page + k);
}

/// Prefetches, for each line of a single vector, the line four pages on, also out of a cache.
HWY_INLINE void prefetch_ahead(const float* at) { hwy::Prefetch(at + 4096); }

/// Floats of an output, 16 MiB, from which on it is written past the caches if it replaces no
/// input. Its next reader would hardly find it in a cache. Shorter outputs are often found there,
/// and would be slower to read from memory.
constexpr std::size_t streamed_min = std::size_t{4} << 20;

/// Part of the results, not a tuning number.
constexpr std::size_t lane_count = 16;

/// Returns the sum over `count` elements in float64. Element i is added to lane i % 16 in the order
/// of i; then lane k + 8 is added to lane k for k < 8, k + 4 for k < 4, and so on. term(tag, i) is
/// a vector of the terms of elements i, i + 1, ...; the tag's lanes are float64. `read`: the floats
/// that the terms read.
template <class Term, class... Floats>
HWY_INLINE double sum_in_lanes(std::size_t count, const Term& term, const Floats*... read) {
  constexpr hn::CappedTag<double, lane_count> d;
  constexpr hn::CappedTag<double, 1> one;
  constexpr std::size_t width = hn::MaxLanes(d), vectors = lane_count / width;
  hn::Vec<decltype(d)> sums[vectors];
  for (auto& sum : sums)
    sum = hn::Zero(d);
  // Within a cache, two streams need no prefetching.
  const bool ahead = sizeof...(read) == 1 && asks_ahead();
  std::size_t i = 0;
  for (const std::size_t whole = count - count % lane_count; i < whole;) {
    (prefetch_pages(read, i, count), ...);
    for (const std::size_t end = std::min(i + read_stretch, whole); i < end; i += lane_count) {
      if (ahead)
        (prefetch_ahead(read + i), ...);
      for (std::size_t k = 0; k < vectors; ++k)
        sums[k] = hn::Add(sums[k], term(d, i + k * width));
    }
  }
  HWY_ALIGN double lanes[lane_count];
  for (std::size_t k = 0; k < vectors; ++k)
    hn::Store(sums[k], d, lanes + k * width);
  for (std::size_t k = 0; i < count; ++k, ++i)
    lanes[k] += hn::GetLane(term(one, i));
  for (std::size_t half = lane_count / 2; half > 0; half /= 2)
    for (std::size_t k = 0; k < half; ++k)
      lanes[k] += lanes[k + half];
  return lanes[0];
}

/// Returns the floats from `from` on, one for each lane of `d`, in float64.
template <class D>
HWY_INLINE hn::Vec<D> load_doubles(D d, const float* from) {
  return hn::PromoteTo(d, hn::LoadU(hn::Rebind<float, D>{}, from));
}

} // namespace troupe::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
