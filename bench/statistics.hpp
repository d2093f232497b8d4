// Summarises the samples of a benchmark: median with least and greatest, and percentiles of times.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace troupe::bench {

struct spread {
  double median = 0, min = 0, max = 0;
};

/// Returns zeros for no samples.
inline spread spread_of(std::vector<double> samples) {
  if (samples.empty())
    return {};
  std::ranges::sort(samples);
  return {samples[samples.size() / 2], samples.front(), samples.back()};
}

struct percentiles {
  double p50 = 0, p99 = 0, p999 = 0;
};

/// Returns zeros for no samples.
inline percentiles percentiles_of(std::vector<double> samples) {
  if (samples.empty())
    return {};
  std::ranges::sort(samples);
  const auto at = [&](double share) {
    const auto i = static_cast<std::size_t>(share * static_cast<double>(samples.size()));
    return samples[std::min(i, samples.size() - 1)];
  };
  return {at(0.5), at(0.99), at(0.999)};
}

} // namespace troupe::bench
