#include "kernels/executors/team_plan.hpp"

#include "kernels/schedules/verify.hpp"
#include "tests/kernels/every_strategy.hpp"
#include "tests/kernels/schedules_interpreter.hpp"

#include "doctest/doctest.h"

#include <random>
#include <vector>

namespace troupe::kernels::executors_team_plan_test {

namespace {

/// Carries out the works in a random order that their waits allow. Returns false on a deadlock.
bool run_in_any_order(const team_plan& plan, std::vector<std::vector<float>>& buffers,
                      std::mt19937& random) {
  std::vector<std::uint32_t> done(plan.works.size());
  while (true) {
    std::vector<std::uint32_t> ready;
    bool all_done = true;
    for (std::uint32_t rank = 0; rank < done.size(); ++rank) {
      if (done[rank] == plan.works[rank].size())
        continue;
      all_done = false;
      const auto& waits = plan.works[rank][done[rank]].waits;
      if (std::ranges::all_of(waits, [&](auto wait) { return done[wait.rank] >= wait.works; }))
        ready.push_back(rank);
    }
    if (ready.empty())
      return all_done;
    const auto rank = ready[random() % ready.size()];
    schedule steps = plan.source;
    steps.steps = plan.works[rank][done[rank]++].steps;
    interpret(steps, buffers);
  }
}

std::vector<std::vector<float>> random_buffers(const schedule& plan, std::size_t count,
                                               std::mt19937& random) {
  std::vector<std::vector<float>> buffers(plan.devices + plan.staging, std::vector<float>(count));
  for (auto& buffer : buffers)
    for (auto& x : buffer)
      x = static_cast<float>(random()) * 0x1p-20f;
  return buffers;
}

} // namespace

TEST_CASE("ranks_of_a_team_get_the_schedules_bytes_in_whatever_order_they_run") {
  std::mt19937 random{3};
  for (const std::uint32_t devices : {2u, 3u, 4u, 8u, 13u, 24u})
    for (const auto& [name, plan] : all_of(devices, 2)) {
      CAPTURE(name);
      CAPTURE(devices);
      const auto made = plan_for_team(plan);
      const auto begun = random_buffers(plan, plan.chunks + 3, random);
      auto expected = begun;
      interpret(plan, expected);
      for (int order = 0; order < 3; ++order) {
        auto buffers = begun;
        REQUIRE(run_in_any_order(made, buffers, random));
        REQUIRE_EQ(buffers, expected);
      }
    }
}

TEST_CASE("the_own_steps_of_a_rank_make_its_result") {
  std::mt19937 random{4};
  for (const std::uint32_t devices : {2u, 3u, 8u, 16u})
    for (const auto& [name, plan] : all_of(devices, 1)) {
      CAPTURE(name);
      const auto made = plan_for_team(plan);
      const auto begun = random_buffers(plan, plan.chunks + 1, random);
      auto expected = begun;
      interpret(plan, expected);
      for (std::uint32_t rank = 0; rank < devices; ++rank) {
        auto buffers = begun;
        auto own = plan;
        own.steps = made.own_steps[rank];
        interpret(own, buffers);
        REQUIRE_EQ(buffers[rank], expected[rank]);
      }
    }
}

TEST_CASE("a_block_is_added_up_and_handed_out_in_one_work_without_waiting") {
  const auto plan = plan_of_sum(4, 4 << 20);
  CHECK_EQ(plan.source.chunks, 32); // Of 128 KiB.
  for (const auto& works : plan.works) {
    CHECK_EQ(works.size(), 8);
    for (const auto& work : works) {
      CHECK(work.waits.empty());
      CHECK_EQ(work.steps.size(), 6);
    }
  }
}

TEST_CASE("a_plan_of_a_sum_is_a_proven_all_reduce_in_the_order_of_the_ranks") {
  std::mt19937 random{5};
  for (const std::uint32_t devices : {1u, 2u, 3u, 8u, 64u})
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{4}, std::size_t{3} << 20}) {
      const auto plan = plan_of_sum(devices, bytes);
      CHECK_EQ(fault_of(plan.source).value_or("none"), "none");
      auto buffers = random_buffers(plan.source, 1000, random);
      auto expected = buffers[0];
      for (std::uint32_t rank = 1; rank < devices; ++rank)
        for (std::size_t i = 0; i < expected.size(); ++i)
          expected[i] += buffers[rank][i];
      REQUIRE(run_in_any_order(plan, buffers, random));
      for (const auto& each : buffers)
        CHECK_EQ(each, expected);
    }
}

TEST_CASE("fingerprints_differ_where_schedules_do") {
  const auto plan = block(4, 2);
  CHECK_EQ(plan_for_team(plan).fingerprint, plan_for_team(plan).fingerprint);
  auto other = plan;
  std::swap(other.steps[0], other.steps[1]);
  CHECK_NE(plan_for_team(plan).fingerprint, plan_for_team(other).fingerprint);
  CHECK_NE(plan_for_team(plan).fingerprint, plan_for_team(block(4, 3)).fingerprint);
}

} // namespace troupe::kernels::executors_team_plan_test
