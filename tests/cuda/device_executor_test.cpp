#include "kernels/devices/device_executor.hpp"

#include "kernels/schedules/strategies.hpp"
#include "tests/cuda/under_test.hpp"
#include "tests/kernels/schedules_interpreter.hpp"
#include "tests/numbers.hpp"

#include <array>
#include <string>
#include <utility>

namespace troupe::test::device_executor_test {

namespace {

std::vector<std::pair<std::string, kernels::schedule>> plans_for(std::uint32_t devices) {
  const auto ring = kernels::ring_in_order(devices);
  const std::array both{ring, kernels::reversed(ring)};
  return {{"central", kernels::central(devices, devices - 1, 3)},
          {"host", kernels::through_host(devices, 2)},
          {"block", kernels::block(devices, 2)},
          {"ring", kernels::rings(std::span{both}.first(1), 2)},
          {"both ways", kernels::rings(both, 1)},
          {"double tree", kernels::double_tree(devices, 2)}};
}

/// Returns floats whose sums depend on the order of the additions.
std::vector<std::vector<float>> inputs(std::uint32_t places, std::size_t count) {
  numbers random{count};
  std::vector<std::vector<float>> all;
  for (std::uint32_t i = 0; i < places; ++i)
    all.push_back(random.units(count));
  return all;
}

} // namespace

TEST_CASE("devices: every strategy gives the sums of its schedule, bit for bit") {
  const auto on = platform_under_test();
  if (!on)
    return;
  bench_device at{*on};
  for (std::uint32_t devices = 2; devices <= 5; ++devices)
    for (const auto& [name, plan] : plans_for(devices))
      for (const std::size_t count : {0u, 1u, 7u, 4099u}) {
        CAPTURE(name);
        CAPTURE(devices);
        CAPTURE(count);
        std::vector<std::uint32_t> places;
        for (std::uint32_t i = 0; i < devices; ++i)
          places.push_back(i % on->devices());
        auto wanted = inputs(devices, count);
        std::vector<device_memory<float>> buffers;
        std::vector<std::span<float>> spans;
        for (const auto& values : wanted) {
          buffers.push_back(at.upload(values));
          spans.push_back(buffers.back().span());
        }
        wanted.resize(devices + plan.staging, std::vector<float>(count));
        kernels::interpret(plan, wanted);
        auto executor = must(device_executor::make(*on, plan, places, count));
        must(executor.run(spans));
        for (std::uint32_t i = 0; i < devices; ++i)
          CHECK(at.download(buffers[i]) == wanted[i]);
      }
}

TEST_CASE("devices: an executor can be used again") {
  const auto on = platform_under_test();
  if (!on)
    return;
  bench_device at{*on};
  const auto plan = kernels::through_host(2, 4);
  auto executor = must(device_executor::make(*on, plan, {0, 1 % on->devices()}, 100));
  for (const float first : {1.0f, 2.0f, 3.0f}) {
    const auto a = at.upload(std::vector<float>(100, first));
    const auto b = at.upload(std::vector<float>(100, 10.0f));
    must(executor.run(std::array{a.span(), b.span()}));
    CHECK(at.download(a) == std::vector<float>(100, first + 10.0f));
    CHECK(at.download(b) == std::vector<float>(100, first + 10.0f));
  }
}

TEST_CASE("devices: a schedule of other devices is refused") {
  const auto on = platform_under_test();
  if (!on)
    return;
  const auto made = device_executor::make(*on, kernels::block(3, 1), {0, 0}, 10);
  REQUIRE_FALSE(made);
  CHECK(made.error().text == "a schedule of 3 devices cannot run on 2");
}

} // namespace troupe::test::device_executor_test
