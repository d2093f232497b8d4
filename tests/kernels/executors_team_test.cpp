#include "kernels/executors/team.hpp"

#include "tests/kernels/every_strategy.hpp"
#include "tests/kernels/schedules_interpreter.hpp"

#include "doctest/doctest.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <thread>
#include <vector>

namespace troupe::kernels::executors_team_test {

namespace {

using namespace std::chrono_literals;

/// Waits yield, because many ranks share few cores here.
constexpr wait_options waiting{.spin = 20us, .yield = true};
constexpr team_options patient{.wait = waiting, .deadline = 20s};

/// Returns element i of a rank's input. Unless `exact`, it is in thirds, whose sums depend on the
/// order.
float number(std::uint32_t rank, std::size_t i, bool exact) {
  const auto x = static_cast<float>((i * 7 + rank * 13) % 1000);
  return exact ? x : x / 3.0f;
}

std::vector<std::vector<float>> begin_of(const schedule& plan, std::size_t count, bool exact) {
  std::vector<std::vector<float>> buffers(plan.devices + plan.staging, std::vector<float>(count));
  for (std::uint32_t rank = 0; rank < plan.devices; ++rank)
    for (std::size_t i = 0; i < count; ++i)
      buffers[rank][i] = number(rank, i, exact);
  return buffers;
}

/// Runs `body` on one thread for each rank.
void on_threads(std::uint32_t ranks, const std::function<void(std::uint32_t)>& body) {
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back(body, rank);
  for (auto& thread : threads)
    thread.join();
}

/// Runs `body` in one process for each rank; its result is the exit status. Returns the wait
/// statuses.
std::vector<int> on_processes(std::uint32_t ranks, const std::function<int(std::uint32_t)>& body) {
  std::vector<pid_t> children;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const pid_t child = fork();
    if (child == 0)
      _exit(body(rank));
    children.push_back(child);
  }
  std::vector<int> statuses;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    statuses.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : -1);
  }
  return statuses;
}

constexpr std::array counts{std::size_t{0},   std::size_t{1},       std::size_t{7},
                            team_slot_floats, team_slot_floats + 1, std::size_t{9001}};

} // namespace

TEST_CASE("threads_get_the_schedules_bytes_with_every_strategy") {
  for (const std::uint32_t ranks : {2u, 3u, 4u, 8u})
    for (const auto& [name, plan] : all_of(ranks, 2)) {
      CAPTURE(name);
      CAPTURE(ranks);
      const auto made = plan_for_team(plan);
      auto memory = *team_memory::of_threads(ranks);
      std::vector<std::vector<std::vector<float>>> results(counts.size());
      for (std::size_t c = 0; c < counts.size(); ++c)
        results[c] = begin_of(plan, counts[c], false);
      std::vector<team_outcome> outcomes(ranks, team_outcome::done);
      on_threads(ranks, [&](std::uint32_t rank) {
        team_member member{memory, rank, patient};
        for (auto& buffers : results)
          if (const auto outcome = member.sum(made, buffers[rank]); outcome != team_outcome::done)
            outcomes[rank] = outcome;
      });
      for (const auto outcome : outcomes)
        REQUIRE_EQ(outcome, team_outcome::done);
      for (std::size_t c = 0; c < counts.size(); ++c) {
        auto expected = begin_of(plan, counts[c], false);
        interpret(plan, expected);
        for (std::uint32_t rank = 0; rank < ranks; ++rank)
          REQUIRE_EQ(results[c][rank], expected[rank]);
      }
    }
}

TEST_CASE("threads_add_integers_exactly_for_2_to_64_ranks") {
  for (const std::uint32_t ranks : {2u, 5u, 16u, 64u}) {
    CAPTURE(ranks);
    const auto plan = plan_of_sum(ranks, 1 << 20);
    auto memory = *team_memory::of_threads(ranks);
    auto buffers = begin_of(plan.source, 100'000, true);
    on_threads(ranks, [&](std::uint32_t rank) {
      team_member member{memory, rank, patient};
      if (member.sum(plan, buffers[rank]) != team_outcome::done)
        buffers[rank].clear();
    });
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      REQUIRE_EQ(buffers[rank].size(), 100'000);
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < buffers[rank].size(); ++i) {
        double sum = 0;
        for (std::uint32_t other = 0; other < ranks; ++other)
          sum += number(other, i, true);
        wrong += buffers[rank][i] == sum ? 0 : 1;
      }
      REQUIRE_EQ(wrong, 0);
    }
  }
}

TEST_CASE("processes_get_the_schedules_bytes_with_private_and_with_common_numbers") {
  // The largest size takes three parts with private numbers.
  const std::array sizes{std::size_t{1}, std::size_t{5000}, 2 * team_part_floats + 77};
  for (const std::uint32_t ranks : {2u, 3u, 4u})
    for (const auto& [name, plan] : all_of(ranks, 2)) {
      CAPTURE(name);
      CAPTURE(ranks);
      const auto made = plan_for_team(plan);
      auto memory = *team_memory::of_processes(ranks, sizes.back());
      const auto statuses = on_processes(ranks, [&, &plan = plan](std::uint32_t rank) {
        team_member member{memory, rank, patient};
        for (const auto count : sizes)
          for (const bool common : {false, true}) {
            auto expected = begin_of(plan, count, false);
            auto own = expected[rank];
            std::span<float> numbers{own};
            if (common) {
              numbers = memory.room(rank).first(count);
              std::ranges::copy(own, numbers.begin());
            }
            if (member.sum(made, numbers) != team_outcome::done)
              return 1;
            // Each part has its own chunks, so the rank that adds up an element differs.
            const bool parts = !common && count > team_part_floats;
            const std::size_t step = parts ? team_part_floats : count;
            for (std::size_t begin = 0; begin < count; begin += step) {
              const std::size_t size = std::min(step, count - begin);
              std::vector<std::vector<float>> part;
              for (const auto& buffer : expected)
                part.emplace_back(buffer.begin() + static_cast<std::ptrdiff_t>(begin),
                                  buffer.begin() + static_cast<std::ptrdiff_t>(begin + size));
              interpret(plan, part);
              if (!std::ranges::equal(part[rank], numbers.subspan(begin, size)))
                return 2;
            }
          }
        return 0;
      });
      REQUIRE_EQ(statuses, std::vector<int>(ranks, 0));
    }
}

TEST_CASE("a_rank_that_leaves_ends_the_sum_of_the_others") {
  const auto plan = plan_for_team(block(3, 1));
  for (const std::size_t count : {std::size_t{1}, std::size_t{50'000}}) {
    auto memory = *team_memory::of_threads(3);
    std::vector<team_outcome> outcomes(3, team_outcome::done), later = outcomes;
    on_threads(3, [&](std::uint32_t rank) {
      team_member member{memory, rank, patient};
      std::vector<float> numbers(count);
      outcomes[rank] = member.sum(plan, numbers);
      if (rank == 1)
        return;
      outcomes[rank] = member.sum(plan, numbers);
      later[rank] = member.sum(plan, numbers);
    });
    for (const std::uint32_t rank : {0u, 2u}) {
      CHECK_EQ(outcomes[rank], team_outcome::peer_lost);
      CHECK_EQ(later[rank], team_outcome::peer_lost);
    }
  }
}

TEST_CASE("a_process_that_is_killed_ends_the_sum_of_the_others_long_before_the_deadline") {
  for (const std::size_t count : {std::size_t{1}, std::size_t{1'000'000}}) {
    auto memory = *team_memory::of_processes(3, 0);
    const auto statuses = on_processes(3, [&](std::uint32_t rank) {
      team_member member{memory, rank, {.wait = waiting, .deadline = 600s}};
      const auto plan = plan_for_team(block(3, 1));
      std::vector<float> numbers(count);
      for (int sums = 0; sums < 20; ++sums) {
        if (rank == 2 && sums == 10)
          kill(getpid(), SIGKILL);
        const auto outcome = member.sum(plan, numbers);
        if (outcome != team_outcome::done)
          return outcome == team_outcome::peer_lost ? 0 : 1;
      }
      return 2;
    });
    CHECK_EQ(statuses, std::vector{0, 0, -1});
  }
}

TEST_CASE("a_rank_that_does_not_come_is_waited_for_until_the_deadline") {
  auto memory = *team_memory::of_threads(2);
  team_member member{memory, 0, {.wait = waiting, .deadline = 50ms}};
  std::vector<float> numbers(10);
  CHECK_EQ(member.sum(plan_for_team(block(2, 1)), numbers), team_outcome::peer_too_late);
}

TEST_CASE("ranks_with_different_counts_or_schedules_fail_together") {
  const auto plan = plan_for_team(block(2, 1)), other = plan_for_team(central(2, 0, 1));
  const auto three = plan_for_team(block(3, 1));
  const auto outcome_of = [&](const team_plan& second, std::size_t count) {
    auto memory = *team_memory::of_threads(2);
    std::vector<team_outcome> outcomes(2, team_outcome::done);
    on_threads(2, [&](std::uint32_t rank) {
      team_member member{memory, rank, patient};
      std::vector<float> numbers(rank == 0 ? 10'000 : count);
      outcomes[rank] = member.sum(rank == 0 ? plan : second, numbers);
    });
    CHECK_EQ(outcomes[0], outcomes[1]);
    return outcomes[0];
  };
  CHECK_EQ(outcome_of(plan, 10'000), team_outcome::done);
  CHECK_EQ(outcome_of(plan, 10'001), team_outcome::sizes_differ);
  CHECK_EQ(outcome_of(plan, 10), team_outcome::sizes_differ);
  CHECK_EQ(outcome_of(other, 10'000), team_outcome::plans_differ);
  CHECK_EQ(outcome_of(three, 10'000), team_outcome::plans_differ);
}

TEST_CASE("processes_attach_by_a_descriptor_of_a_team_and_of_nothing_else") {
  auto memory = *team_memory::of_processes(2, 100);
  const auto attached = team_memory::attach(memory.descriptor());
  REQUIRE(attached);
  CHECK_EQ(attached->ranks(), 2);
  attached->room(1)[99] = 5;
  CHECK_EQ(memory.room(1)[99], 5);
  CHECK_FALSE(team_memory::attach(-1));
  const int other = memfd_create("other", MFD_CLOEXEC);
  CHECK_FALSE(team_memory::attach(other));
  CHECK_EQ(ftruncate(other, 1 << 20), 0);
  CHECK_FALSE(team_memory::attach(other));
  close(other);
}

} // namespace troupe::kernels::executors_team_test
