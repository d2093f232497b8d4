#include "kernels/schedules/collect.hpp"

#include "tests/kernels/every_strategy.hpp"
#include "tests/kernels/schedules_interpreter.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <vector>

namespace troupe::kernels::schedules_collect_test {

namespace {

/// Returns buffers for which the sum over all devices differs from any other sum.
std::vector<std::vector<float>> inputs_of(const schedule& plan, std::size_t count) {
  std::vector<std::vector<float>> all(plan.devices + plan.staging, std::vector<float>(count));
  for (std::uint32_t device = 0; device < plan.devices; ++device)
    for (std::size_t i = 0; i < count; ++i)
      all[device][i] = static_cast<float>((1u << device) + i % 7);
  return all;
}

} // namespace

TEST_CASE("a collected schedule has each chunk's sum at its home, with the same bytes") {
  for (std::uint32_t devices = 2; devices <= 9; ++devices)
    for (const auto& [name, plan] : all_of(devices, 2)) {
      if (plan.goal != collective::all_reduce)
        continue;
      CAPTURE(name);
      CAPTURE(devices);
      constexpr std::size_t count = 257;
      auto whole = inputs_of(plan, count), part = whole;
      interpret(plan, whole);
      const auto made = collect(plan);
      interpret(made.plan, part);
      REQUIRE(made.homes.size() == plan.chunks);
      for (std::uint32_t chunk = 0; chunk < plan.chunks; ++chunk) {
        const auto range = range_of_chunk(count, plan.chunks, chunk);
        REQUIRE(made.homes[chunk] < devices);
        for (std::size_t i = range.begin; i < range.begin + range.size; ++i)
          REQUIRE(part[made.homes[chunk]][i] == whole[0][i]);
      }
    }
}

TEST_CASE("a collected schedule copies no sum to those who need none") {
  for (std::uint32_t devices = 2; devices <= 9; ++devices) {
    CAPTURE(devices);
    for (const auto& plan : {block(devices, 3), rings(both_ways(devices), 1),
                             central(devices, 0, 4), double_tree(devices, 2)}) {
      const auto made = collect(plan);
      // For every chunk, the numbers of all devices but one have to move.
      CHECK(made.plan.steps.size() == std::size_t{plan.chunks} * (devices - 1));
      CHECK(
        std::ranges::all_of(made.plan.steps, [](auto& x) { return x.kind == step_kind::reduce; }));
    }
  }
}

} // namespace troupe::kernels::schedules_collect_test
