// Maps values to buckets, and computes means and quantiles from them.
#include "serialization/histogram.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

namespace troupe {

namespace {

constexpr std::uint64_t exact_buckets = 256;

std::size_t bucket_of(std::uint64_t value) {
  if (value < exact_buckets)
    return static_cast<std::size_t>(value);
  // Values 256..511 have bit width 9 and share the first bucket behind the exact ones.
  return static_cast<std::size_t>(exact_buckets) + static_cast<std::size_t>(std::bit_width(value))
         - 9;
}

std::uint64_t upper_edge(std::size_t bucket) {
  if (bucket < exact_buckets)
    return bucket;
  const auto width = bucket - exact_buckets + 9;
  return width >= 64 ? std::numeric_limits<std::uint64_t>::max() : (std::uint64_t{1} << width) - 1;
}

} // namespace

histogram::histogram(std::vector<std::uint64_t> counts, std::uint64_t sum, std::uint64_t max)
    : counts_(std::move(counts)), sum_(sum), max_(max) {
  if (counts_.size() > buckets_max)
    counts_.resize(buckets_max);
  while (!counts_.empty() && counts_.back() == 0)
    counts_.pop_back();
}

void histogram::add(std::uint64_t value) {
  const auto bucket = bucket_of(value);
  if (bucket >= counts_.size())
    counts_.resize(bucket + 1);
  ++counts_[bucket];
  sum_ += value;
  max_ = std::max(max_, value);
}

void histogram::merge(const histogram& other) {
  if (other.counts_.size() > counts_.size())
    counts_.resize(other.counts_.size());
  for (std::size_t i = 0; i < other.counts_.size(); ++i)
    counts_[i] += other.counts_[i];
  sum_ += other.sum_;
  max_ = std::max(max_, other.max_);
}

std::uint64_t histogram::count() const {
  std::uint64_t total = 0;
  for (auto x : counts_)
    total += x;
  return total;
}

double histogram::mean() const {
  const auto total = count();
  return total == 0 ? 0.0 : static_cast<double>(sum_) / static_cast<double>(total);
}

std::uint64_t histogram::quantile(double q) const {
  const auto wanted = std::max(1.0, std::ceil(q * static_cast<double>(count())));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    seen += counts_[i];
    if (seen > 0 && static_cast<double>(seen) >= wanted)
      return std::min(upper_edge(i), max_);
  }
  return max_;
}

std::uint64_t time_class(std::chrono::nanoseconds time) {
  const auto us = std::chrono::duration<double, std::micro>(time).count();
  return us <= 1.0 ? 0 : static_cast<std::uint64_t>(std::ceil(8.0 * std::log2(us)));
}

double milliseconds_of(std::uint64_t time_class) {
  return 1e-3 * std::exp2(static_cast<double>(time_class) / 8.0);
}

} // namespace troupe
