#include "kernels/vector_ops.hpp"

#include "tests/kernels/cpu_targets.hpp"
#include "tests/numbers.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace troupe::kernels::vector_ops_test {

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float quiet = std::numeric_limits<float>::quiet_NaN();
constexpr double u = 0x1p-24, half_denormal = 0x1p-150;

/// Exponents that inputs are drawn from. `ranges`: ordinary, down to denormals, denormals alone.
struct exponents {
  int min, max;
};
constexpr std::array<exponents, 3> ranges{{{-1, 0}, {-149, 60}, {-149, -120}}};

std::vector<float> floats(std::size_t count, exponents range, std::uint64_t seed) {
  return test::numbers{seed}.extremes(count, range.min, range.max);
}

/// Calls check(x, y) with inputs of every size and range, on every target.
template <class Check>
void on_all_inputs(const Check& check) {
  on_every_target([&] {
    for (const std::size_t count : test::awkward_sizes)
      for (const auto range : ranges) {
        CAPTURE(count);
        CAPTURE(range.min);
        check(floats(count, range, 1), floats(count, range, 2));
      }
  });
}

/// Returns the largest |got[i] - exact(i)| / bound(i); at most 1 passes.
template <class Exact, class Bound>
double worst(const std::vector<float>& got, const Exact& exact, const Bound& bound) {
  double most = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double error = std::fabs(double{got[i]} - exact(i));
    most = std::max(most, error == 0 ? 0 : std::isnan(error) ? 1e9 : error / bound(i));
  }
  return most;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::ranges::equal(a, b, {}, std::bit_cast<std::uint32_t, float>,
                            std::bit_cast<std::uint32_t, float>);
}

/// Returns a dot product in the order that vector_ops.hpp defines, written independently.
double dot_by_lanes(std::span<const float> x, std::span<const float> y) {
  std::array<double, 16> inline_executor{};
  for (std::size_t i = 0; i < x.size(); ++i)
    inline_executor[i % 16] += double{x[i]} * double{y[i]};
  std::array<double, 8> a;
  for (std::size_t i = 0; i < 8; ++i)
    a[i] = inline_executor[i] + inline_executor[i + 8];
  return ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]));
}

} // namespace

TEST_CASE("sum adds from the first input on and is within the stated bound") {
  on_every_target([] {
    for (const std::size_t inputs : {0u, 1u, 2u, 3u, 5u, 17u})
      for (const std::size_t count : test::awkward_sizes)
        for (const auto range : ranges) {
          std::vector<std::vector<float>> all;
          for (std::uint32_t k = 0; k < inputs; ++k)
            all.push_back(floats(count, range, 10 + k));
          std::vector<float> total(count, quiet), in_order(count, 0.0f);
          sum(total, std::vector<std::span<const float>>(all.begin(), all.end()));
          std::vector<double> exact(count), sizes_sum(count);
          for (std::size_t k = 0; k < inputs; ++k)
            for (std::size_t i = 0; i < count; ++i) {
              in_order[i] = k == 0 ? all[k][i] : in_order[i] + all[k][i];
              exact[i] += double{all[k][i]};
              sizes_sum[i] += std::fabs(double{all[k][i]});
            }
          CHECK(same_bits(total, in_order));
          // float64 adds 17 such numbers with an error below 2^-48 of their sizes.
          CHECK(worst(
                  total, [&](auto i) { return exact[i]; },
                  [&](auto i) {
                    return (static_cast<double>(inputs - 1) * u + 0x1p-40) * sizes_sum[i];
                  })
                <= 1);
        }
  });
}

TEST_CASE("sum may write over one of its inputs") {
  on_all_inputs([](auto x, const auto& y) {
    std::vector<float> apart(x.size());
    const std::vector<float> z = y;
    sum(apart, std::vector<std::span<const float>>{y, x, z});
    sum(x, std::vector<std::span<const float>>{y, x, z});
    CHECK(same_bits(x, apart));
  });
}

TEST_CASE("sum of vectors beyond the caches has the bits of a sum in parts, at any alignment") {
  constexpr std::size_t count = (std::size_t{4} << 20) + 1000, half = count / 2;
  const auto x = floats(count, {-1, 0}, 1), y = floats(count, {-1, 0}, 2);
  const std::span a{x}, b{y};
  std::vector<float> whole(count + 1), parts(count);
  on_every_target([&] {
    for (const std::size_t offset : {0u, 1u}) {
      std::ranges::fill(whole, quiet);
      const auto total = std::span{whole}.subspan(offset, count);
      sum(total, std::vector{a, b});
      sum(std::span{parts}.first(half), std::vector{a.first(half), b.first(half)});
      sum(std::span{parts}.subspan(half), std::vector{a.subspan(half), b.subspan(half)});
      CHECK(std::ranges::equal(total, parts));
      CHECK(std::isnan(whole[offset == 0 ? count : 0]));
    }
  });
}

TEST_CASE("add rounds each sum once") {
  on_all_inputs([](const auto& x, const auto& y) {
    auto total = x;
    add(total, y);
    for (std::size_t i = 0; i < x.size(); ++i)
      CHECK(std::bit_cast<std::uint32_t>(total[i])
            == std::bit_cast<std::uint32_t>(static_cast<float>(double{x[i]} + double{y[i]})));
  });
}

TEST_CASE("axpy rounds the product and the sum") {
  double most = 0;
  on_all_inputs([&](const auto& x, const auto& y) {
    for (const float a : {0.3f, -1.7e-5f, 0.0f, 1e10f}) {
      auto result = y;
      axpy(result, a, x);
      const double found = worst(
        result, [&](auto i) { return y[i] + double{a} * x[i]; },
        [&](auto i) {
          return u * std::fabs(double{a} * x[i]) + u * std::fabs(double{result[i]}) + half_denormal;
        });
      CHECK(found <= 1);
      most = std::max(most, found);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const volatile float product = a * x[i]; // Rounded on its own: no fused multiply-add.
        const float rounded = y[i] + product;
        REQUIRE(std::bit_cast<std::uint32_t>(result[i]) == std::bit_cast<std::uint32_t>(rounded));
      }
    }
  });
  CHECK(most > 0.3); // A bound far above every error would be no test.
}

TEST_CASE("scale rounds each product once") {
  on_all_inputs([](const auto& x, const auto&) {
    for (const float a : {0.3f, -1.7e-5f, 0.0f, 1e10f}) {
      auto result = x;
      scale(result, a);
      for (std::size_t i = 0; i < x.size(); ++i)
        CHECK(std::bit_cast<std::uint32_t>(result[i])
              == std::bit_cast<std::uint32_t>(static_cast<float>(double{a} * x[i])));
    }
  });
}

TEST_CASE("clip moves what is beyond the limit to it, and nothing else") {
  on_all_inputs([](auto x, const auto&) {
    for (const float limit : {0.0f, 0.25f, 1e-40f, infinity}) {
      if (x.size() > 3)
        x[0] = infinity, x[1] = -infinity, x[2] = quiet, x.back() = -quiet;
      auto result = x;
      clip(result, limit);
      for (std::size_t i = 0; i < x.size(); ++i)
        if (std::isnan(x[i]))
          CHECK(std::isnan(result[i]));
        else
          CHECK(result[i] == std::clamp(x[i], -limit, limit));
    }
  });
}

TEST_CASE("clip_by_norm scales to the limit, or leaves alone") {
  on_all_inputs([](const auto& x, const auto&) {
    long double squares = 0;
    for (const float value : x)
      squares += static_cast<long double>(value) * value;
    const auto length = static_cast<double>(std::sqrt(squares));
    if (length == 0)
      return;
    for (const double part : {0.25, 0.9, 1.1}) {
      const auto limit = static_cast<float>(part * length);
      if (limit == 0.0f || (part < 1 && !(limit < length)))
        continue;
      auto result = x;
      const float factor = clip_by_norm(result, limit);
      if (limit >= length) {
        CHECK(factor == 1.0f);
        CHECK(same_bits(result, x));
        continue;
      }
      CHECK(factor == doctest::Approx(limit / length).epsilon(1e-6));
      const double slack = 1 + static_cast<double>(x.size()) * 0x1p-29; // The error of norm(x).
      CHECK(worst(
              result, [&](auto i) { return x[i] * (limit / length); },
              [&](auto i) {
                return slack * (2 * u * std::fabs(x[i] * (limit / length))) + half_denormal;
              })
            <= 1);
    }
  });
}

TEST_CASE("clip_by_norm leaves a vector with NaN alone and zeroes one with infinity") {
  on_every_target([] {
    std::vector<float> x{3.0f, quiet, 4.0f}, y{3.0f, -infinity};
    CHECK(clip_by_norm(x, 1.0f) == 1.0f);
    CHECK(x[0] == 3.0f);
    CHECK(clip_by_norm(y, 1.0f) == 0.0f);
    CHECK(y[0] == 0.0f);
    CHECK(std::isnan(y[1])); // first_non_finite still finds it.
  });
}

TEST_CASE("dot and squared_norm are within n * 2^-53 of the exact sum") {
  on_all_inputs([](const auto& x, const auto& y) {
    long double products = 0, products_size = 0, squares = 0; // 2^11 times finer than the bound.
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto product = static_cast<long double>(x[i]) * y[i];
      products += product, products_size += std::fabs(product);
      squares += static_cast<long double>(x[i]) * x[i];
    }
    const auto bound = static_cast<long double>(x.size()) * 0x1p-53L;
    CHECK(std::fabs(static_cast<long double>(dot(x, y)) - products) <= bound * products_size);
    CHECK(std::fabs(static_cast<long double>(squared_norm(x)) - squares) <= bound * squares);
    CHECK(std::fabs(static_cast<long double>(norm(x)) - std::sqrt(squares))
          <= (bound / 2 + 0x1p-53L) * std::sqrt(squares));
  });
}

TEST_CASE("dot and squared_norm add in the order of the 16 lanes, at any alignment") {
  on_all_inputs([](const auto& x, const auto& y) {
    for (const std::size_t offset : {0u, 1u, 5u}) {
      if (offset > x.size())
        continue;
      const auto a = std::span{x}.subspan(offset), b = std::span{y}.subspan(offset);
      CHECK(dot(a, b) == dot_by_lanes(a, b));
      CHECK(squared_norm(a) == dot_by_lanes(a, a));
    }
  });
}

TEST_CASE("reductions of vectors beyond the caches keep that order, and find the last element") {
  constexpr std::size_t count = (std::size_t{1} << 20) + 9001;
  auto x = floats(count, {-1, 0}, 1);
  const auto y = floats(count, {-1, 0}, 2);
  const double products = dot_by_lanes(x, y), squares = dot_by_lanes(x, x);
  x.push_back(infinity);
  on_every_target([&] {
    CHECK(dot(std::span{x}.first(count), y) == products);
    CHECK(squared_norm(std::span{x}.first(count)) == squares);
    CHECK(first_non_finite(x) == count);
    CHECK(first_non_finite(std::span{x}.first(count)) == count);
  });
}

TEST_CASE("squared_norm neither overflows nor underflows") {
  const float largest = std::numeric_limits<float>::max();
  const float smallest = std::numeric_limits<float>::denorm_min();
  CHECK(squared_norm(std::vector<float>(1000, largest)) > 1e79);
  CHECK(std::isfinite(squared_norm(std::vector<float>(1000, largest))));
  CHECK(squared_norm(std::vector<float>(1, smallest)) == 0x1p-298);
}

TEST_CASE("first_non_finite finds each position") {
  const float payload = std::bit_cast<float>(0xff800001u);
  on_every_target([&] {
    for (const std::size_t count : {1u, 3u, 16u, 67u})
      for (std::size_t position = 0; position < count; ++position)
        for (const float bad : {quiet, payload, infinity, -infinity}) {
          auto x = floats(count, {-149, 127}, 5);
          x[position] = bad;
          CHECK(first_non_finite(x) == position);
          x.back() = bad; // A second bad value behind it has no effect.
          CHECK(first_non_finite(x) == position);
        }
  });
}

TEST_CASE("first_non_finite finds positions around the ends of its stretches") {
  on_every_target([] {
    for (const std::size_t position : {0u, 1023u, 1024u, 1025u, 2047u, 2048u, 4098u}) {
      auto x = floats(4099, {-149, 127}, 6);
      x[position] = infinity;
      CHECK(first_non_finite(x) == position);
    }
  });
}

TEST_CASE("first_non_finite takes finite values for finite") {
  const float largest = std::numeric_limits<float>::max();
  on_every_target([&] {
    for (const std::size_t count : test::awkward_sizes) {
      auto x = floats(count, {-149, 127}, 7);
      if (count > 1)
        x[0] = largest, x[1] = -largest;
      CHECK(first_non_finite(x) == count);
    }
  });
}

} // namespace troupe::kernels::vector_ops_test
