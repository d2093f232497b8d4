#include "examples/02_async_sgd/roc.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>
#include <vector>

namespace async_sgd {

double area_under_roc(std::span<const float> scores, std::span<const std::uint32_t> labels) {
  assert(scores.size() == labels.size());
  std::vector<std::pair<float, bool>> order;
  order.reserve(scores.size());
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (std::isnan(scores[i])) // NaN has no place in the order.
      return 0.5;
    order.emplace_back(scores[i], labels[i] == 1);
  }
  std::ranges::sort(order);
  double positives = 0.0, negatives = 0.0, won = 0.0;
  for (std::size_t i = 0; i < order.size();) {
    double positives_here = 0.0, negatives_here = 0.0; // Samples with this score.
    for (const float score = order[i].first; i < order.size() && order[i].first == score; ++i)
      (order[i].second ? positives_here : negatives_here) += 1.0;
    won += positives_here * (negatives + 0.5 * negatives_here);
    positives += positives_here;
    negatives += negatives_here;
  }
  return positives > 0.0 && negatives > 0.0 ? won / (positives * negatives) : 0.5;
}

} // namespace async_sgd
