#include "kernels/vector_ops.hpp"
#include "tests/cuda/same_bytes.hpp"
#include "tests/cuda/under_test.hpp"
#include "tests/numbers.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace troupe::test::vector_ops_cuda_test {

TEST_CASE("devices: add rounds each sum once") {
  const auto on = platform_under_test();
  if (!on)
    return;
  bench_device at{*on};
  for (const std::size_t count : device_sizes) {
    numbers random{count};
    const auto a = random.extremes(count), b = random.extremes(count);
    const auto sum = at.upload(a);
    const auto x = at.upload(b);
    kernels::add(at.stream(), sum.span(), x.span());
    const auto got = at.download(sum);
    for (std::size_t i = 0; i < count; ++i)
      REQUIRE(got[i] == static_cast<float>(double{a[i]} + double{b[i]}));
  }
}

TEST_CASE("devices: a squared norm is within its bound") {
  const auto on = platform_under_test();
  if (!on)
    return;
  bench_device at{*on};
  const auto partials = must(make_memory<double>(*on, 0, kernels::partials_max));
  for (const bool extreme : {false, true})
    for (const std::size_t count : device_sizes) {
      numbers random{count + 1};
      const auto values = extreme ? random.extremes(count) : random.units(count);
      const auto x = at.upload(values);
      const auto result = at.upload(std::vector<double>{-1.0});
      kernels::squared_norm(at.stream(), x.span(), partials.span().first<kernels::partials_max>(),
                            result.data());
      long double exact = 0;
      for (const float value : values)
        exact += static_cast<long double>(value) * value;
      const double got = at.download(result)[0];
      CHECK(std::fabs(static_cast<double>(got - exact))
            <= static_cast<double>(count) * 0x1p-53 * static_cast<double>(exact));
    }
}

TEST_CASE("devices: the first element that is not finite is found") {
  const auto on = platform_under_test();
  if (!on)
    return;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  bench_device at{*on};
  const auto partials = must(make_memory<std::uint64_t>(*on, 0, kernels::partials_max));
  const auto found = [&](const std::vector<float>& values) {
    const auto x = at.upload(values);
    const auto result = at.upload(std::vector<std::uint64_t>{77});
    kernels::first_non_finite(at.stream(), x.span(), partials.span().first<kernels::partials_max>(),
                              result.data());
    return at.download(result)[0];
  };
  for (const std::size_t count : device_sizes) {
    numbers random{count};
    auto values = random.extremes(count);
    CHECK(found(values) == count);
    if (count == 0)
      continue;
    values.back() = std::numeric_limits<float>::quiet_NaN();
    CHECK(found(values) == count - 1);
    values[count / 2] = -infinity;
    CHECK(found(values) == count / 2);
    values.front() = infinity;
    CHECK(found(values) == 0);
  }
}

TEST_CASE("devices: sums of any number of vectors are those of the CPU") {
  const auto on = platform_under_test();
  if (!on)
    return;
  bench_device at{*on};
  constexpr std::size_t group = kernels::sum_group;
  for (const std::size_t inputs : {0ul, 1ul, 2ul, 7ul, group, group + 1, 3 * group})
    for (const std::size_t count : {0, 1, 257, 4099})
      for (const bool in_place : {false, true}) {
        CAPTURE(inputs);
        CAPTURE(count);
        numbers random{count + inputs};
        std::vector<std::vector<float>> values;
        std::vector<device_memory<float>> there;
        std::vector<std::span<const float>> views, views_there;
        for (std::size_t k = 0; k < inputs; ++k) {
          values.push_back(random.extremes(count));
          there.push_back(at.upload(values.back()));
        }
        views.assign(values.begin(), values.end());
        for (const auto& each : there)
          views_there.push_back(each.span());
        std::vector<float> wanted(count);
        kernels::sum(wanted, views);
        const std::size_t last = std::min(inputs, group);
        const auto apart = at.upload(std::vector<float>(count, 77.0f));
        const auto& total = in_place && last > 0 ? there[last - 1] : apart;
        kernels::sum(at.stream(), total.span(), views_there);
        CHECK(same_bytes(at.download(total), wanted));
      }
}

TEST_CASE("devices: axpy, scale and clip give the bytes of the CPU") {
  const auto on = platform_under_test();
  if (!on)
    return;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  bench_device at{*on};
  for (const std::size_t count : device_sizes)
    for (const float a : {0.0f, -1.7f, 0x1p-100f, 0x1p100f, infinity}) {
      CAPTURE(a);
      numbers random{count + 2};
      auto x = random.extremes(count), y = random.extremes(count);
      if (count > 3) {
        x[0] = infinity, x[1] = -infinity, x[2] = -0.0f;
        x[3] = std::numeric_limits<float>::quiet_NaN();
      }
      const auto x_there = at.upload(x), y_there = at.upload(y);
      kernels::axpy(y, a, x);
      kernels::axpy(at.stream(), y_there.span(), a, x_there.span());
      CHECK(same_bytes(at.download(y_there), y));
      kernels::clip(y, std::fabs(a));
      kernels::clip(at.stream(), y_there.span(), std::fabs(a));
      CHECK(same_bytes(at.download(y_there), y));
      kernels::scale(x, a);
      kernels::scale(at.stream(), x_there.span(), a);
      CHECK(same_bytes(at.download(x_there), x));
    }
}

TEST_CASE("devices: products and norms are within their bounds") {
  const auto on = platform_under_test();
  if (!on)
    return;
  bench_device at{*on};
  const auto memory = must(make_memory<double>(*on, 0, kernels::partials_max));
  const auto partials = memory.span().first<kernels::partials_max>();
  for (const bool extreme : {false, true})
    for (const std::size_t count : device_sizes) {
      numbers random{count + 3};
      const auto a = extreme ? random.extremes(count) : random.units(count);
      const auto b = extreme ? random.extremes(count) : random.units(count);
      const auto x = at.upload(a), y = at.upload(b);
      const auto product = at.upload(std::vector<double>{-1.0}),
                 length = at.upload(std::vector{-1.0});
      kernels::dot(at.stream(), x.span(), y.span(), partials, product.data());
      kernels::norm(at.stream(), x.span(), partials, length.data());
      long double exact = 0, sizes = 0, squares = 0;
      for (std::size_t i = 0; i < count; ++i) {
        exact += static_cast<long double>(a[i]) * b[i];
        sizes += std::fabs(static_cast<long double>(a[i]) * b[i]);
        squares += static_cast<long double>(a[i]) * a[i];
      }
      const auto n = static_cast<long double>(count), root = std::sqrt(squares);
      CHECK(std::fabs(at.download(product)[0] - exact) <= n * 0x1p-53L * sizes);
      CHECK(std::fabs(at.download(length)[0] - root) <= (n / 2 + 1) * 0x1p-53L * root);
    }
}

TEST_CASE("devices: a vector is clipped by its norm, and only where that is too long") {
  const auto on = platform_under_test();
  if (!on)
    return;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  bench_device at{*on};
  const auto memory = must(make_memory<double>(*on, 0, kernels::partials_max));
  const auto partials = memory.span().first<kernels::partials_max>();
  for (const std::size_t count : device_sizes)
    for (const float limit : {0x1p-60f, 0.5f, 0x1p60f})
      for (const float special : {1.0f, infinity, std::numeric_limits<float>::quiet_NaN()}) {
        CAPTURE(limit);
        CAPTURE(special);
        numbers random{count + 4};
        auto values = random.units(count);
        if (count > 0)
          values.back() *= special;
        const auto x = at.upload(values);
        const auto factor = at.upload(std::vector<float>{-1.0f});
        kernels::clip_by_norm(at.stream(), x.span(), limit, partials, factor.data());
        const float got = at.download(factor)[0];
        auto wanted = values;
        const float factor_wanted = kernels::clip_by_norm(wanted, limit);
        CHECK(std::fabs(got - factor_wanted) <= 0x1p-23f * factor_wanted);
        wanted = values;
        if (factor_wanted != 1.0f)
          kernels::scale(wanted, got);
        CHECK(same_bytes(at.download(x), wanted));
      }
}

} // namespace troupe::test::vector_ops_cuda_test
