#include "kernels/devices/device_sum.hpp"

#include "kernels/schedules/planner.hpp"
#include "kernels/schedules/presets.hpp"
#include "tests/cuda/under_test.hpp"
#include "tests/kernels/schedules_interpreter.hpp"
#include "tests/numbers.hpp"

#include <array>
#include <cmath>

namespace troupe::test::device_sum_test {

namespace {

/// A `device_sum` with shares that lie on its devices.
struct sum_bench {
  sum_bench(std::unique_ptr<device_platform> opened, std::vector<std::uint32_t> where,
            std::size_t length, const device_sum_options& options = {})
      : on(*opened), count(length), adds(std::move(opened), options, length),
        devices(std::move(where)) {
    numbers random{length};
    for (const std::uint32_t device : devices) {
      values.push_back(random.units(count));
      bench_device at{on, device};
      there.push_back(at.upload(values.back()));
      const auto k = static_cast<float>(factors.size());
      factors.push_back({1.0f - 0.125f * k, 1.0f, 0.5f + 0.3f * k});
    }
    for (std::size_t i = 0; i < devices.size(); ++i)
      shares.push_back({devices[i], there[i].span(), factors[i]});
  }

  /// Cuts `out` into three stretches.
  std::vector<std::span<float>> stretches(std::vector<float>& out) const {
    const std::span<float> all{out};
    const std::size_t first = count / 3, second = count / 2;
    return {all.first(first), all.subspan(first, second), all.subspan(first + second)};
  }

  /// Returns share i's part of the sum: its values times the factor of their stretch.
  std::vector<float> scaled(std::size_t i) const {
    auto made = values[i];
    const auto cut = stretches(made);
    for (std::size_t k = 0; k < cut.size(); ++k)
      for (float& x : cut[k])
        x *= factors[i][k];
    return made;
  }

  device_platform& on;
  std::size_t count;
  device_sum adds;
  std::vector<std::uint32_t> devices;
  std::vector<std::vector<float>> values, factors;
  std::vector<device_memory<float>> there;
  std::vector<device_share> shares;
};

/// Returns the result of the planned schedule with one place for each device, as `device_sum`
/// promises.
std::vector<float> by_hand(const std::vector<std::vector<float>>& places, std::size_t count) {
  const auto n = static_cast<std::uint32_t>(places.size());
  if (n == 1)
    return places[0];
  const kernels::routing ways{kernels::star(n, 25e9, 10e-6)};
  const auto plans = kernels::plan_all_reduce(ways, static_cast<double>(count * sizeof(float)));
  const auto& plan = plans[kernels::choose(plans)].plan;
  auto all = places;
  all.resize(n + plan.staging, std::vector<float>(count));
  kernels::interpret(plan, all);
  return all[0];
}

} // namespace

TEST_CASE("devices: a sum has the bytes of the planned schedule on the scaled shares") {
  for (std::uint32_t n = 1; n <= 4; ++n)
    for (const std::size_t count : {3u, 257u, 4099u, 100'003u}) {
      auto on = platform_under_test();
      if (!on)
        return;
      if (on->devices() < n)
        continue;
      CAPTURE(n);
      CAPTURE(count);
      std::vector<std::uint32_t> devices;
      for (std::uint32_t i = n; i-- > 0;) // The order of devices has no effect.
        devices.push_back(i);
      sum_bench with{std::move(on), devices, count};
      std::vector<std::vector<float>> places(n);
      for (std::uint32_t i = 0; i < n; ++i)
        places[devices[i]] = with.scaled(i);
      const auto wanted = by_hand(places, count);
      for (int round = 0; round < 2; ++round) {
        std::vector<float> found(count);
        must(with.adds.add_up(with.shares, with.stretches(found)));
        CHECK(found == wanted);
      }
    }
}

TEST_CASE("devices: shares stay as they are, and can be had one by one") {
  auto on = platform_under_test();
  if (!on)
    return;
  const std::uint32_t last = on->devices() - 1;
  sum_bench with{std::move(on), {0, last}, 1000};
  std::vector<float> found(1000);
  must(with.adds.add_up(with.shares, with.stretches(found)));
  for (std::size_t i = 0; i < 2; ++i) {
    std::vector<float> alone(1000);
    must(with.adds.fetch(with.devices[i], with.there[i].span(), with.stretches(alone)));
    CHECK(alone == with.values[i]);
  }
}

TEST_CASE("devices: several shares of one device are added in their order") {
  auto on = platform_under_test();
  if (!on)
    return;
  sum_bench with{std::move(on), {0, 0, 0}, 500};
  auto wanted = with.scaled(0);
  for (const std::size_t i : {1u, 2u}) {
    const auto next = with.scaled(i);
    for (std::size_t k = 0; k < wanted.size(); ++k)
      wanted[k] += next[k];
  }
  std::vector<float> found(500);
  must(with.adds.add_up(with.shares, with.stretches(found)));
  CHECK(found == wanted);
}

TEST_CASE("devices: how they add up is told once for each set of them") {
  auto on = platform_under_test();
  if (!on || on->devices() < 2)
    return;
  std::vector<std::string> said;
  sum_bench with{
    std::move(on), {0, 1}, 1000, {.tell = [&](const std::string& line) { said.push_back(line); }}};
  std::vector<float> found(1000);
  must(with.adds.add_up(with.shares, with.stretches(found)));
  must(with.adds.add_up(with.shares, with.stretches(found)));
  REQUIRE(said.size() == 1);
  CHECK(said[0].starts_with("2 devices add up gradients: "));
}

} // namespace troupe::test::device_sum_test
