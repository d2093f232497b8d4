#include "examples/02_async_sgd/roc.hpp"

#include "examples/02_async_sgd/random.hpp"

#include "doctest/doctest.h"

#include <limits>
#include <vector>

namespace async_sgd::roc_test {

namespace {

/// Returns the area under the curve from its definition, over all pairs.
double by_pairs(const std::vector<float>& scores, const std::vector<std::uint32_t>& labels) {
  double won = 0.0, pairs = 0.0;
  for (std::size_t i = 0; i < scores.size(); ++i)
    for (std::size_t j = 0; j < scores.size(); ++j)
      if (labels[i] == 1 && labels[j] == 0) {
        pairs += 1.0;
        won += scores[i] > scores[j] ? 1.0 : scores[i] == scores[j] ? 0.5 : 0.0;
      }
  return won / pairs;
}

} // namespace

TEST_CASE("area under roc equals the count over all pairs, with few and many ties") {
  splitmix64 random(5);
  for (const std::uint64_t distinct : {1u, 2u, 7u, 1000u, 1u << 30})
    for (const std::size_t count : {2u, 3u, 50u, 301u}) {
      std::vector<float> scores(count);
      std::vector<std::uint32_t> labels(count);
      for (std::size_t i = 0; i < count; ++i) {
        labels[i] = i < 2 ? static_cast<std::uint32_t>(i) : random.next() % 3 == 0;
        scores[i] = static_cast<float>(random.next() % distinct) - 3.0f;
      }
      CHECK(area_under_roc(scores, labels) == doctest::Approx(by_pairs(scores, labels)));
    }
}

TEST_CASE("area under roc of perfect, reversed and impossible orders") {
  using labels = std::vector<std::uint32_t>;
  using scores = std::vector<float>;
  CHECK(area_under_roc(scores{1, 2, 3}, labels{0, 0, 1}) == 1.0);
  CHECK(area_under_roc(scores{3, 2, 1}, labels{0, 0, 1}) == 0.0);
  CHECK(area_under_roc(scores{1, 2}, labels{1, 1}) == 0.5);
  CHECK(area_under_roc(scores{}, labels{}) == 0.5);
  CHECK(area_under_roc(scores{1, std::numeric_limits<float>::quiet_NaN()}, labels{0, 1}) == 0.5);
}

} // namespace async_sgd::roc_test
