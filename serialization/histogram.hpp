// Counts of small whole numbers (staleness in versions or clocks), exact below 256; of times too,
// by their logarithms.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe {

/// Buckets 0..255 are exact; from there on each power of two is one bucket (256.., 512.., ...).
class histogram {
public:
  /// One bucket for each power of two from 2^8 to 2^63 follows the exact ones.
  static constexpr std::size_t buckets_max = 256 + 56;

  histogram() = default;
  /// From the wire. Trailing zero counts may be left out; counts beyond buckets_max are dropped.
  histogram(std::vector<std::uint64_t> counts, std::uint64_t sum, std::uint64_t max);

  void add(std::uint64_t value);
  void merge(const histogram& other);
  std::uint64_t count() const;
  double mean() const; ///< 0 where nothing was counted.
  std::uint64_t max() const { return max_; }
  /// Smallest value v such that at least q of all values are <= v (upper edge of its bucket, capped
  /// at max). q in [0, 1]; at 0 the smallest value. 0 where nothing was counted.
  std::uint64_t quantile(double q) const;
  std::uint64_t sum() const { return sum_; }
  const std::vector<std::uint64_t>& counts() const { return counts_; }

  bool operator==(const histogram&) const = default;

private:
  std::vector<std::uint64_t> counts_;
  std::uint64_t sum_ = 0;
  std::uint64_t max_ = 0;
};

/// What to count of a time: eight values for each factor of two, so that quantiles are right within
/// 10 %. 0: at most 1 us.
std::uint64_t time_class(std::chrono::nanoseconds time);
/// The longest time of that class.
double milliseconds_of(std::uint64_t time_class);

} // namespace troupe
