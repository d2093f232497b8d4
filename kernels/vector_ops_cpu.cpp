#include "kernels/vector_ops.hpp"

#include "kernels/cpu_clones.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstdint>

namespace troupe::kernels {

namespace {

constexpr std::size_t lane_count = 16; // Part of the results, not a tuning number.

constexpr std::uint32_t magnitude = 0x7fffffff, infinity_bits = 0x7f800000;

TROUPE_CPU_CLONES void add_all(float* sum, const float* x, std::size_t count) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i)
    sum[i] += x[i];
}

TROUPE_CPU_CLONES void add_squares(double* into, const float* x, std::size_t rows) {
  double lanes[lane_count] = {};
  for (std::size_t row = 0; row < rows; ++row, x += lane_count)
    for (std::size_t lane = 0; lane < lane_count; ++lane)
      lanes[lane] += double{x[lane]} * double{x[lane]};
  std::copy(lanes, lanes + lane_count, into);
}

TROUPE_CPU_CLONES bool all_finite(const float* x, std::size_t count) {
  std::uint32_t seen = 0;
  for (std::size_t i = 0; i < count; ++i) // Carries into the sign bit where x[i] is not finite.
    seen |= (std::bit_cast<std::uint32_t>(x[i]) & magnitude) + (~magnitude - infinity_bits);
  return (seen >> 31) == 0;
}

bool is_finite(float x) { return (std::bit_cast<std::uint32_t>(x) & magnitude) < infinity_bits; }

} // namespace

void add(std::span<float> sum, std::span<const float> x) {
  assert(sum.size() == x.size());
  add_all(sum.data(), x.data(), x.size());
}

double squared_norm(std::span<const float> x) {
  std::array<double, lane_count> lanes{};
  const std::size_t whole = x.size() - x.size() % lane_count;
  add_squares(lanes.data(), x.data(), whole / lane_count);
  for (std::size_t i = whole; i < x.size(); ++i)
    lanes[i - whole] += double{x[i]} * double{x[i]};
  for (std::size_t half = lane_count / 2; half > 0; half /= 2)
    for (std::size_t lane = 0; lane < half; ++lane)
      lanes[lane] += lanes[lane + half];
  return lanes[0];
}

std::size_t first_non_finite(std::span<const float> x) {
  // A stretch is tested as a whole, without a branch for each element, and searched only when it
  // fails. 4 KiB: long enough to hide the branch, short enough to stay in the L1 cache.
  constexpr std::size_t stretch_max = 1024;
  for (std::size_t begin = 0; begin < x.size(); begin += stretch_max) {
    const auto stretch = x.subspan(begin, std::min(stretch_max, x.size() - begin));
    if (!all_finite(stretch.data(), stretch.size()))
      return begin
             + static_cast<std::size_t>(std::ranges::find_if_not(stretch, is_finite)
                                        - stretch.begin());
  }
  return x.size();
}

} // namespace troupe::kernels
