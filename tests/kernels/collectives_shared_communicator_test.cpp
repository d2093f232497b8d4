#include "kernels/collectives/shared_communicator.hpp"

#include "doctest/doctest.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace troupe::kernels::collectives_shared_communicator_test {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t floats = 200'000;
constexpr std::uint64_t steps_max = 1000;

/// What the processes of a test share besides the shared memory.
struct shared_state {
  std::atomic<std::uint32_t> generation{0};
  std::array<std::atomic<std::uint64_t>, 3> step{}; ///< Of each rank.
  std::atomic<bool> is_wrong{false};                ///< A rank found another sum.
};

shared_communicator_options options_of(std::uint32_t generation) {
  shared_communicator_options made;
  made.wait = {.spin = 20us, .yield = true};
  made.losses = generation;
  made.deadline = 60s;
  return made;
}

float number(std::uint32_t rank, std::uint64_t step, std::size_t i) {
  return static_cast<float>((i + 31 * step + 7 * rank) % 5000);
}

/// One rank of a job that does not end before all have done all steps: it goes on with the newest
/// step of all ranks after each loss. Returns 0, or 1 where a rank found another sum.
int take_part(team_memory& memory, std::uint32_t rank, shared_state& shared) {
  std::uint64_t step = 0;
  const auto numbers = memory.room(rank).first(floats);
  const std::array parts{numbers.first(floats / 2), numbers.subspan(floats / 2)};
  while (!shared.is_wrong) {
    auto options = options_of(shared.generation);
    options.wanted = [&] { return !shared.is_wrong && shared.generation == options.losses; };
    auto communicator = shared_communicator::form(memory, rank, options);
    if (!communicator)
      continue;
    const auto all = (*communicator)->gather(step);
    if (!all)
      continue;
    step = std::ranges::max(*all);
    while (step < steps_max) {
      for (std::size_t i = 0; i < floats; ++i)
        numbers[i] = number(rank, step, i);
      (*communicator)->begin(parts);
      if (!(*communicator)->finish())
        break;
      for (std::size_t i = 0; i < floats; ++i)
        if (numbers[i] != number(0, step, i) + number(1, step, i) + number(2, step, i))
          shared.is_wrong = true;
      if (shared.is_wrong)
        return 1;
      shared.step[rank] = ++step;
    }
    if (step == steps_max && (*communicator)->gather(0))
      return 0;
  }
  return 1;
}

} // namespace

TEST_CASE("ranks_that_are_killed_in_the_midst_of_sums_and_started_again_leave_only_exact_sums") {
  auto memory = *team_memory::of_processes(3, floats);
  auto* shared = new (mmap(nullptr, sizeof(shared_state), PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0)) shared_state;
  std::array<pid_t, 3> pids{};
  const auto start = [&](std::uint32_t rank) {
    pids[rank] = fork();
    if (pids[rank] == 0)
      _exit(take_part(memory, rank, *shared));
  };
  for (std::uint32_t rank = 0; rank < 3; ++rank)
    start(rank);
  std::mt19937 random{5};
  int kills = 0;
  for (; kills < 40; ++kills) {
    std::this_thread::sleep_for(std::chrono::microseconds{random() % 20'000});
    // Far from the end: a rank that is started again needs the others.
    if (shared->step[0] > steps_max / 2 || shared->is_wrong)
      break;
    const auto rank = static_cast<std::uint32_t>(random() % 3);
    kill(pids[rank], SIGKILL);
    waitpid(pids[rank], nullptr, 0);
    start(rank);
    ++shared->generation;
  }
  CHECK_GT(kills, 5);
  for (const auto pid : pids) {
    int status = 0;
    waitpid(pid, &status, 0);
    CHECK_EQ(status, 0);
  }
  munmap(shared, sizeof(shared_state));
}

TEST_CASE("a_rank_that_is_started_again_ends_the_round_of_the_others_without_their_help") {
  auto memory = *team_memory::of_threads(2); // It does not tell when a thread ends.
  std::atomic<bool> is_formed{false};
  auto end = errc{};
  std::thread survivor{[&] {
    auto communicator = *shared_communicator::form(memory, 0, options_of(0));
    is_formed = true;
    is_formed.notify_all();
    std::vector<float> numbers(10, 1.0f);
    const auto summed = communicator->sum(numbers);
    end = summed ? errc{} : summed.error().code;
    communicator.reset();
    communicator = *shared_communicator::form(memory, 0, options_of(1));
    CHECK(communicator->sum(numbers));
    CHECK(communicator->gather(3));
  }};
  auto first = *shared_communicator::form(memory, 1, options_of(0));
  is_formed.wait(false);
  const auto second = shared_communicator::form(memory, 1, options_of(1));
  REQUIRE(second);
  std::vector<float> numbers(10, 1.0f);
  CHECK((*second)->sum(numbers));
  CHECK((*second)->gather(4));
  CHECK_FALSE(first->sum(numbers)); // Of an earlier round.
  survivor.join();
  CHECK_EQ(end, errc::peer_lost);
}

TEST_CASE("ranks_of_different_generations_form_no_communicator") {
  auto memory = *team_memory::of_threads(2);
  std::atomic<std::uint32_t> newest{0};
  std::thread late{[&] {
    auto options = options_of(0);
    options.wanted = [&] { return newest == 0; };
    const auto none = shared_communicator::form(memory, 0, options);
    CHECK_FALSE(none);
    CHECK(shared_communicator::form(memory, 0, options_of(1)));
  }};
  std::thread early{[&] {
    auto options = options_of(1);
    options.waiting_told = 1ms;
    options.waits = [&](const std::vector<std::uint32_t>& missing) {
      CHECK((missing.empty() || missing == std::vector{0u}));
      newest = 1;
    };
    CHECK(shared_communicator::form(memory, 1, options));
  }};
  late.join();
  early.join();
}

TEST_CASE("a_rank_that_does_not_come_is_named") {
  auto memory = *team_memory::of_threads(3);
  auto options = options_of(0);
  options.forming = 50ms;
  options.waiting_told = 10ms;
  std::vector<std::uint32_t> told;
  options.waits = [&](const std::vector<std::uint32_t>& missing) {
    if (!missing.empty())
      told = missing;
  };
  const auto communicator = shared_communicator::form(memory, 1, options);
  REQUIRE_FALSE(communicator);
  CHECK_EQ(communicator.error().code, errc::timed_out);
  CHECK_EQ(communicator.error().text, "rank 0 did not come within 0 s");
  CHECK_EQ(told, std::vector{0u, 2u});
}

TEST_CASE("memory_that_the_system_does_not_give_is_an_error_and_not_a_signal") {
  const auto pid = fork();
  if (pid == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1 << 20, 1 << 20};
    setrlimit(RLIMIT_FSIZE, &limit);
    const auto none = team_memory::of_processes(2, 1 << 20);
    _exit(none ? 1 : none.error().text.ends_with(": File too large") ? 0 : 2);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  CHECK_EQ(status, 0);
  const auto many = team_memory::of_processes(65, 0);
  REQUIRE_FALSE(many);
  CHECK_EQ(many.error().code, errc::invalid_argument);
}

} // namespace troupe::kernels::collectives_shared_communicator_test
