#include "kernels/schedules/strategies.hpp"

#include "kernels/schedules/verify.hpp"
#include "tests/kernels/every_strategy.hpp"
#include "tests/kernels/schedules_interpreter.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <tuple>
#include <vector>

namespace troupe::kernels::schedules_strategies_test {

namespace {

std::uint32_t height_of(const tree_parents& tree) {
  std::uint32_t highest = 0;
  for (std::uint32_t v = 0; v < tree.size(); ++v) {
    std::uint32_t height = 0;
    for (auto at = v; tree[at] != at && height <= tree.size(); at = tree[at])
      ++height;
    highest = std::max(highest, height);
  }
  return highest;
}

std::vector<std::uint32_t> children_of(const tree_parents& tree) {
  std::vector<std::uint32_t> counts(tree.size());
  for (std::uint32_t v = 0; v < tree.size(); ++v)
    counts[tree[v]] += tree[v] == v ? 0 : 1;
  return counts;
}

} // namespace

TEST_CASE("every_strategy_is_correct_for_2_to_64_devices") {
  for (std::uint32_t devices = 2; devices <= 64; ++devices)
    for (const std::uint32_t pieces : devices <= 16 ? std::vector{1u, 3u} : std::vector{1u})
      for (const auto& [name, plan] : all_of(devices, pieces)) {
        CAPTURE(name);
        CAPTURE(devices);
        CAPTURE(pieces);
        CHECK_EQ(fault_of(plan).value_or("none"), "none");
        CHECK_FALSE(plan.steps.empty());
      }
}

TEST_CASE("every_strategy_is_correct_for_more_than_64_devices") {
  for (const std::uint32_t devices : {65u, 130u})
    for (const auto& [name, plan] : all_of(devices, 1)) {
      CAPTURE(name);
      CHECK_EQ(fault_of(plan).value_or("none"), "none");
    }
}

TEST_CASE("schedules_add_integers_exactly") {
  std::mt19937 random{1};
  for (const std::uint32_t devices : {2u, 3u, 8u, 13u, 16u})
    for (const std::size_t count : {0u, 1u, 7u, 257u, 1000u})
      for (const auto& [name, plan] : all_of(devices, 2)) {
        CAPTURE(name);
        CAPTURE(devices);
        CAPTURE(count);
        std::vector<std::vector<float>> buffers(devices + plan.staging,
                                                std::vector<float>(count, -1e9f));
        std::vector<float> expected(count);
        for (std::uint32_t device = 0; device < devices; ++device)
          for (std::size_t i = 0; i < count; ++i) {
            buffers[device][i] = static_cast<float>(random() % 1000);
            expected[i] += buffers[device][i];
          }
        const auto begun = buffers;
        interpret(plan, buffers);
        for (std::uint32_t chunk = 0; chunk < plan.chunks; ++chunk) {
          const auto range = range_of_chunk(count, plan.chunks, chunk);
          for (std::uint32_t device = 0; device < devices; ++device) {
            if (plan.goal == collective::reduce_scatter && owner_of_chunk(plan, chunk) != device)
              continue;
            const bool copies =
              plan.goal == collective::all_gather || plan.goal == collective::broadcast;
            const auto& wanted = copies ? begun[owner_of_chunk(plan, chunk)] : expected;
            for (std::size_t i = range.begin; i < range.begin + range.size; ++i)
              REQUIRE_EQ(buffers[device][i], wanted[i]);
          }
        }
      }
}

TEST_CASE("chunks_cover_the_buffer_and_differ_by_one_element_at_most") {
  for (const std::size_t count : {0u, 1u, 6u, 7u, 8u, 1000u})
    for (const std::uint32_t chunks : {1u, 2u, 7u, 64u}) {
      std::size_t end = 0;
      for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
        const auto range = range_of_chunk(count, chunks, chunk);
        CHECK_EQ(range.begin, end);
        CHECK(range.size >= count / chunks);
        CHECK(range.size <= count / chunks + 1);
        end += range.size;
      }
      CHECK_EQ(end, count);
    }
}

TEST_CASE("dependencies_keep_every_two_steps_apart_of_which_one_writes_what_the_other_uses") {
  for (const auto& [name, plan] : all_of(6, 2)) {
    CAPTURE(name);
    const auto before = dependencies(plan);
    std::vector<std::vector<bool>> follows(plan.steps.size()); // The transitive closure.
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      follows[i].resize(plan.steps.size());
      for (const auto j : before[i]) {
        follows[i][j] = true;
        for (std::size_t k = 0; k < j; ++k)
          follows[i][k] = follows[i][k] || follows[j][k];
      }
      for (std::size_t j = 0; j < i; ++j) {
        const auto &a = plan.steps[j], &b = plan.steps[i];
        if (a.chunk == b.chunk && (a.to == b.from || a.to == b.to || a.from == b.to))
          CHECK(follows[i][j]);
        if (a.chunk != b.chunk)
          CHECK_FALSE(follows[i][j]);
      }
    }
  }
}

TEST_CASE("a_step_waits_for_writers_of_both_its_chunks_and_for_readers_of_what_it_overwrites") {
  constexpr auto copy = step_kind::copy, reduce = step_kind::reduce;
  const schedule plan{collective::all_reduce,
                      4,
                      0,
                      2,
                      {{0, 1, 0, copy},   // Reads buffer 0.
                       {0, 2, 0, reduce}, // Also reads buffer 0.
                       {3, 0, 0, copy},   // Overwrites buffer 0.
                       {0, 1, 0, reduce}, // Reads buffer 0, and adds to the first step's result.
                       {3, 0, 1, copy}}}; // Uses another chunk.
  CHECK_EQ(dependencies(plan), std::vector<std::vector<std::uint32_t>>{{}, {}, {0, 1}, {0, 2}, {}});
}

TEST_CASE("two_trees_are_low_binary_and_share_no_inner_node") {
  for (std::uint32_t devices = 1; devices <= 130; ++devices) {
    CAPTURE(devices);
    const auto [first, second] = two_trees(devices);
    for (const auto& tree : {first, second}) {
      std::uint32_t levels = 0;
      while ((1u << levels) <= devices)
        ++levels;
      CHECK(height_of(tree) < std::max(levels, 1u));
      CHECK_EQ(std::ranges::count_if(children_of(tree), [](auto n) { return n > 2; }), 0);
    }
    const auto inner = children_of(first), other = children_of(second);
    for (std::uint32_t v = 0; v < devices; ++v)
      CHECK_FALSE((inner[v] > 0 && other[v] > 0));
  }
}

TEST_CASE("a_ring_sends_no_device_more_than_twice_its_buffer") {
  const std::array path{ring_in_order(8)};
  const auto plan = rings(path, 1);
  std::vector<std::uint32_t> sent(8);
  for (const auto& step : plan.steps)
    ++sent[step.from];
  CHECK_EQ(sent, std::vector<std::uint32_t>(8, 2 * 7)); // A chunk is an eighth of the buffer.
}

} // namespace troupe::kernels::schedules_strategies_test
