#include "kernels/sparsify.hpp"

#include "tests/kernels/cpu_targets.hpp"
#include "tests/numbers.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace troupe::kernels::sparsify_test {

namespace {

/// Returns the indices of the k largest by the definition: ties go to the smaller index.
std::vector<std::uint32_t> sorted_top(const std::vector<float>& v, std::size_t k) {
  std::vector<std::uint32_t> order(v.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(
    order, [&](std::uint32_t a, std::uint32_t b) { return std::fabs(v[a]) > std::fabs(v[b]); });
  order.resize(k);
  std::ranges::sort(order);
  return order;
}

void check_top(const std::vector<float>& x, const std::vector<float>& old, std::size_t k) {
  CAPTURE(x.size());
  CAPTURE(k);
  std::vector<float> v(x.size());
  for (std::size_t i = 0; i < x.size(); ++i)
    v[i] = x[i] + old[i];
  auto residual = old;
  std::vector<std::uint32_t> places(k);
  std::vector<float> values(k);
  top_k(x, residual, places, values);
  CHECK(places == sorted_top(v, k));
  std::vector<float> whole = residual;
  for (std::size_t i = 0; i < k; ++i) {
    CHECK(values[i] == v[places[i]]);
    CHECK(residual[places[i]] == 0.0f);
    whole[places[i]] = values[i];
  }
  CHECK(whole == v);
}

std::vector<std::size_t> ks_of(std::size_t count) {
  std::vector<std::size_t> ks;
  for (const std::size_t k :
       {std::size_t{0}, std::size_t{1}, std::size_t{2}, count / 100, count / 3, count - 1, count})
    if (k <= count)
      ks.push_back(k);
  return ks;
}

} // namespace

TEST_CASE("top_k takes the largest and keeps the rest") {
  on_every_target([] {
    for (const std::size_t count : {0ul, 1ul, 3ul, 255ul, 256ul, 257ul, 4099ul, 40'000ul})
      for (const auto& [low, high] : {std::pair{-20, 3}, {-149, 126}, {-149, -120}})
        for (const std::size_t k : ks_of(count))
          check_top(test::numbers{1}.extremes(count, low, high),
                    test::numbers{2}.extremes(count, low, high), k);
  });
}

TEST_CASE("top_k takes the first of equal ones") {
  on_every_target([] {
    for (const std::size_t count : {33ul, 4099ul, 40'000ul})
      for (const float same : {0.0f, 1.0f, std::numeric_limits<float>::denorm_min()}) {
        std::vector<float> x(count, same);
        for (std::size_t i = 0; i < count; i += 3)
          x[i] = -same;
        for (const std::size_t k : ks_of(count))
          check_top(x, std::vector<float>(count), k);
      }
  });
}

TEST_CASE("top_k finds the few that a sample misses, and the many that it does not expect") {
  on_every_target([] {
    // All elements that a sample reads may be small, or all may be large.
    constexpr std::size_t count = 40'000;
    for (const std::size_t period : {2ul, 16ul, 39ul, 64ul, 1024ul})
      for (const bool rare : {false, true}) {
        auto x = test::numbers{3}.extremes(count, -3, 1);
        for (std::size_t i = 0; i < count; ++i)
          if ((i % period == 0) == rare)
            x[i] *= 1e6f;
        check_top(x, std::vector<float>(count), 400);
      }
  });
}

TEST_CASE("top_k takes what is not finite first") {
  on_every_target([] {
    auto x = test::numbers{4}.extremes(4099, -3, 3);
    x[17] = std::numeric_limits<float>::quiet_NaN();
    x[4001] = -std::numeric_limits<float>::infinity();
    std::vector<float> residual(x.size()), values(2);
    std::vector<std::uint32_t> places(2);
    top_k(x, residual, places, values);
    CHECK(places == std::vector<std::uint32_t>{17, 4001});
    CHECK(residual[17] == 0.0f);
  });
}

TEST_CASE("top_k takes the first of NaNs, whatever bits they have") {
  on_every_target([] {
    for (const std::size_t k : {1ul, 2ul, 3ul}) {
      auto x = test::numbers{4}.extremes(4099, -3, 3);
      x[5] = std::bit_cast<float>(0xffc00001);
      x[77] = std::bit_cast<float>(0x7fffffff);
      x[4098] = std::bit_cast<float>(0x7fc00000);
      std::vector<float> residual(x.size()), values(k);
      std::vector<std::uint32_t> places(k), wanted{5, 77, 4098};
      top_k(x, residual, places, values);
      wanted.resize(k);
      CHECK(places == wanted);
    }
  });
}

TEST_CASE("random_k takes one of each stretch, and put_random_k puts it back there") {
  on_every_target([] {
    for (const std::size_t count : {1ul, 3ul, 255ul, 256ul, 257ul, 4099ul})
      for (const std::size_t k : ks_of(count)) {
        if (k == 0)
          continue;
        const auto x = test::numbers{5}.extremes(count, -149, 126),
                   old = test::numbers{6}.extremes(count, -149, 126);
        auto residual = old;
        std::vector<float> values(k), y(count, 1.0f);
        random_k(x, residual, 7, values);
        put_random_k(values, 7, y);
        std::vector<std::size_t> taken(k);
        for (std::size_t i = 0; i < count; ++i) {
          const float v = x[i] + old[i];
          CHECK((residual[i] == v || (y[i] == v && residual[i] == 0.0f)));
          CHECK(y[i] + residual[i] == v);
        }
        for (std::size_t j = 0; j < k; ++j) {
          const std::size_t first = j * count / k, end = (j + 1) * count / k;
          CHECK(std::count(y.begin() + static_cast<std::ptrdiff_t>(first),
                           y.begin() + static_cast<std::ptrdiff_t>(end), values[j])
                >= 1);
        }
      }
  });
}

TEST_CASE("random_k takes every element about equally often, as its seed says") {
  on_every_target([] {
    constexpr std::size_t count = 1000, k = 50, rounds = 4000;
    std::vector<float> x(count, 1.0f), y(count), values(k);
    std::vector<double> often(count);
    for (std::uint64_t seed = 0; seed < rounds; ++seed) {
      put_random_k(std::vector<float>(k, 1.0f), seed, y);
      CHECK(std::count(y.begin(), y.end(), 1.0f) == k);
      for (std::size_t i = 0; i < count; ++i)
        often[i] += y[i];
    }
    const double expected = double(rounds) * k / count;
    for (const double each : often) // The bound is six standard deviations.
      CHECK(std::fabs(each - expected) <= 6 * std::sqrt(expected));
  });
}

} // namespace troupe::kernels::sparsify_test
