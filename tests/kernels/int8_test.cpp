#include "kernels/int8.hpp"

#include "tests/kernels/cpu_targets.hpp"
#include "tests/numbers.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

namespace troupe::kernels::int8_test {

namespace {

struct packed {
  std::vector<std::int8_t> q;
  std::vector<float> scales;
};

packed nearest(std::span<const float> x) {
  packed made{std::vector<std::int8_t>(x.size()), std::vector<float>((x.size() + 255) / 256)};
  to_int8(x, made.q, made.scales);
  return made;
}

packed stochastic(std::span<const float> x, std::uint64_t seed) {
  packed made{std::vector<std::int8_t>(x.size()), std::vector<float>((x.size() + 255) / 256)};
  to_int8_stochastic(x, seed, made.q, made.scales);
  return made;
}

std::vector<float> back(const packed& from) {
  std::vector<float> y(from.q.size());
  from_int8(from.q, from.scales, y);
  return y;
}

double top_of(std::span<const float> x, std::size_t block) {
  double top = 0;
  for (std::size_t i = block * 256; i < std::min(x.size(), block * 256 + 256); ++i)
    top = std::max(top, std::fabs(double{x[i]}));
  return top;
}

void check_errors(const std::vector<float>& x, const packed& made, double bound) {
  const auto y = back(made);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double top = top_of(x, i / 256);
    const double allowed = top < 0x1p-100 ? std::fabs(double{x[i]}) : bound * top / 127;
    if (!(std::fabs(double{x[i]} - double{y[i]}) <= allowed))
      FAIL_CHECK(i, ": ", x[i], " became ", y[i], " in a block up to ", top);
  }
}

} // namespace

TEST_CASE("a block's scale is its largest magnitude over 127") {
  on_every_target([] {
    for (const std::size_t count : test::awkward_sizes) {
      const auto x = test::numbers{1}.extremes(count, -20, 3);
      const auto made = nearest(x);
      for (std::size_t block = 0; block < made.scales.size(); ++block)
        CHECK(std::fabs(double{made.scales[block]} - top_of(x, block) / 127)
              <= 0x1p-24 * made.scales[block]);
      CHECK(stochastic(x, 1).scales == made.scales);
    }
  });
}

TEST_CASE("errors of a round trip in 8 bits are within their bounds") {
  on_every_target([] {
    for (const std::size_t count : test::awkward_sizes)
      for (const auto& [low, high] : {std::pair{-20, 3}, {-149, 127}, {100, 128}, {-149, -95}}) {
        const auto x = test::numbers{2}.extremes(count, low, high);
        check_errors(x, nearest(x), 0.5001);
        check_errors(x, stochastic(x, 3), 1.0001);
      }
  });
}

TEST_CASE("the integers are what the formula says") {
  on_every_target([] {
    for (const std::size_t count : test::awkward_sizes) {
      const auto x = test::numbers{4}.extremes(count, -8, 3);
      const auto made = nearest(x);
      for (std::size_t i = 0; i < count; ++i) {
        const auto inverse = static_cast<float>(127.0f / static_cast<float>(top_of(x, i / 256)));
        CHECK(made.q[i] == static_cast<int>(std::nearbyint(x[i] * inverse)));
      }
    }
  });
}

TEST_CASE("blocks of zeros and of next to nothing give zeros") {
  on_every_target([] {
    for (const float tiny : {0.0f, -0.0f, std::numeric_limits<float>::denorm_min(), 0x1p-101f}) {
      std::vector<float> x(600, tiny);
      x[300] = 1.0f; // The second block has one value.
      for (const auto& made : {nearest(x), stochastic(x, 5)}) {
        const auto y = back(made);
        for (std::size_t i = 0; i < x.size(); ++i)
          CHECK(y[i] == (i == 300 ? 127 * made.scales[1] : 0.0f));
        CHECK(made.scales[0] == 0.0f);
      }
    }
  });
}

TEST_CASE("a block with a number that is not finite gives NaN, the others do not") {
  on_every_target([] {
    for (const float bad :
         {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      auto x = test::numbers{6}.extremes(600, -3, 3);
      x[257] = bad;
      for (const auto& made : {nearest(x), stochastic(x, 7)}) {
        const auto y = back(made);
        for (std::size_t i = 0; i < y.size(); ++i)
          CHECK(std::isnan(y[i]) == (i / 256 == 1));
      }
    }
  });
}

TEST_CASE("the largest floats stay finite") {
  on_every_target([] {
    std::vector<float> x(300, std::numeric_limits<float>::max());
    x[7] = -x[7];
    for (const auto& made : {nearest(x), stochastic(x, 8)})
      for (const float y : back(made))
        CHECK(std::isfinite(y));
  });
}

TEST_CASE("random rounding is right on average") {
  on_every_target([] {
    constexpr int rounds = 20'000;
    std::vector<float> x{127.0f, 0.0f, 0.25f, -0.25f, 3.5f, -77.125f, 126.9f, 1e-3f};
    std::vector<double> sums(x.size());
    for (int round = 0; round < rounds; ++round) {
      const auto y = back(stochastic(x, static_cast<std::uint64_t>(round)));
      for (std::size_t i = 0; i < x.size(); ++i)
        sums[i] += y[i];
    }
    CHECK(sums[1] == 0);                       // Zeros stay zeros.
    for (std::size_t i = 0; i < x.size(); ++i) // Five standard deviations of at most 0.5 each.
      CHECK(std::fabs(sums[i] / rounds - double{x[i]}) <= 5 * 0.5 / std::sqrt(rounds) + 0x1p-15);
  });
}

TEST_CASE("random rounding is a function of seed and index") {
  on_every_target([] {
    const auto x = test::numbers{9}.extremes(4099, -8, 3);
    CHECK(stochastic(x, 1).q == stochastic(x, 1).q);
    CHECK(stochastic(x, 1).q != stochastic(x, 2).q);
    CHECK(stochastic(x, 1).q != stochastic(x, std::uint64_t{1} << 32).q);
    // The number of elements that follow has no effect.
    const auto fewer = stochastic(std::span{x}.first(300), 1);
    const auto all = stochastic(std::span{x}.first(512), 1);
    CHECK(std::equal(fewer.q.begin(), fewer.q.begin() + 256, all.q.begin()));
  });
}

} // namespace troupe::kernels::int8_test
