#include "kernels/vector_ops.hpp"
#include "tests/cuda/numbers.hpp"
#include "tests/cuda/under_test.hpp"

#include <limits>

namespace troupe::test {

TEST_CASE("devices: add rounds each sum once") {
  const auto on = platform_under_test();
  if (!on)
    return;
  bench_device at{*on};
  for (const std::size_t count : awkward_sizes) {
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
    for (const std::size_t count : awkward_sizes) {
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
  for (const std::size_t count : awkward_sizes) {
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

} // namespace troupe::test
