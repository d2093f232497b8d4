// Counts small whole numbers, such as staleness in versions or clocks; exact below 256. Also counts
// durations by their logarithms.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe {

/// Buckets 0..255 are exact. Each power of two from 256 on is one bucket (256.., 512.., ...).
class histogram {
public:
  /// One bucket for each power of two from 2^8 to 2^63 follows the exact ones.
  static constexpr std::size_t buckets_max = 256 + 56;

  histogram() = default;
  /// Takes the wire format. Trailing zero counts may be absent; counts beyond buckets_max are
  /// dropped.
  histogram(std::vector<std::uint64_t> counts, std::uint64_t sum, std::uint64_t max);

  void add(std::uint64_t value);
  void merge(const histogram& other);
  std::uint64_t count() const;
  double mean() const; ///< Is 0 if the histogram is empty.
  std::uint64_t max() const { return max_; }
  /// Returns the smallest value v such that at least q of all values are <= v, as the upper edge of
  /// its bucket, capped at max. q in [0, 1]; 0 gives the smallest value. 0 if the histogram is
  /// empty.
  std::uint64_t quantile(double q) const;
  std::uint64_t sum() const { return sum_; }
  const std::vector<std::uint64_t>& counts() const { return counts_; }

  bool operator==(const histogram&) const = default;

private:
  std::vector<std::uint64_t> counts_;
  std::uint64_t sum_ = 0;
  std::uint64_t max_ = 0;
};

/// Maps a duration to its value in a histogram: eight values for each factor of two, so that
/// quantiles are right within 10 %. 0: at most 1 us.
std::uint64_t time_class(std::chrono::nanoseconds time);
/// Returns the longest time of that class.
double milliseconds_of(std::uint64_t time_class);

} // namespace troupe
