#include "serialization/histogram.hpp"

#include "doctest/doctest.h"
#include "tests/serialization/random_source.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::test::histogram_test {

TEST_CASE("an empty histogram answers 0") {
  const histogram empty;
  CHECK(empty.count() == 0);
  CHECK(empty.mean() == 0.0);
  CHECK(empty.max() == 0);
  CHECK(empty.quantile(0.5) == 0);
}

TEST_CASE("small values are counted exactly") {
  random_source random{1};
  for (int round = 0; round < 100; ++round) {
    histogram counted;
    std::vector<std::uint64_t> values;
    std::uint64_t sum = 0;
    for (auto n = 1 + random.below(50); n > 0; --n) {
      values.push_back(random.below(256));
      counted.add(values.back());
      sum += values.back();
    }
    std::sort(values.begin(), values.end());
    CHECK(counted.count() == values.size());
    CHECK(counted.sum() == sum);
    CHECK(counted.max() == values.back());
    for (auto q : {0.0, 0.01, 0.25, 0.5, 0.9, 0.99, 1.0}) {
      const auto wanted = std::max(1.0, std::ceil(q * static_cast<double>(values.size())));
      CHECK(counted.quantile(q) == values[static_cast<std::size_t>(wanted) - 1]);
    }
  }
}

TEST_CASE("large values fall into a bucket for each power of two") {
  histogram counted;
  for (std::uint64_t x : {256, 511, 512, 5000})
    counted.add(x);
  CHECK(counted.counts().at(256) == 2);
  CHECK(counted.counts().at(257) == 1);
  CHECK(counted.quantile(0.5) == 511);
  CHECK(counted.quantile(0.75) == 1023);
  CHECK(counted.quantile(1.0) == 5000);
}

TEST_CASE("the largest value has the last bucket") {
  histogram counted;
  counted.add(~std::uint64_t{0});
  CHECK(counted.counts().size() == histogram::buckets_max);
  CHECK(counted.quantile(0.5) == ~std::uint64_t{0});
}

TEST_CASE("merged histograms equal one that counted everything") {
  random_source random{2};
  for (int round = 0; round < 100; ++round) {
    histogram a, b, both;
    for (auto n = random.below(30); n > 0; --n) {
      const auto value = random.number();
      (random.chance() ? a : b).add(value);
      both.add(value);
    }
    a.merge(b);
    CHECK(a == both);
  }
}

TEST_CASE("times are counted within a tenth") {
  CHECK(time_class(std::chrono::nanoseconds{0}) == 0);
  CHECK(time_class(std::chrono::microseconds{1}) == 0);
  CHECK(time_class(std::chrono::hours{1}) < 256);
  for (std::int64_t us = 2; us < 100'000'000; us = us * 5 / 4 + 1) {
    const auto told = 1e3 * milliseconds_of(time_class(std::chrono::microseconds{us}));
    CHECK(told >= 0.999999 * static_cast<double>(us));
    CHECK(told < 1.0906 * static_cast<double>(us));
  }
}

TEST_CASE("a histogram is made again from its counts") {
  histogram counted;
  counted.add(3);
  counted.add(300);
  auto counts = counted.counts();
  CHECK(histogram{counts, counted.sum(), counted.max()} == counted);
  counts.resize(1000);
  CHECK(histogram{counts, counted.sum(), counted.max()} == counted);
}

} // namespace troupe::test::histogram_test
