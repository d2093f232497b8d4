// Adds up over the ranks of a team, as a contestant of all_reduce.py.
//
//   all_reduce_team --memory threads|shared|private --ranks N --sizes BYTES,... [--spin US]
//
// threads: ranks are threads, each with numbers of its own. Otherwise ranks are processes, whose
// numbers are in the team's shared memory, or private to each.
#include "bench/all_reduce/all_reduce_loop.hpp"
#include "bench/all_reduce/all_reduce_processes.hpp"
#include "kernels/executors/team.hpp"

#include <cstdint>
#include <map>
#include <thread>

namespace {

using namespace troupe;

struct team_run {
  bench::all_reduce_options loop;
  std::string memory = "threads";
  kernels::team_options team;
};

std::span<float> private_numbers(std::size_t count) {
  // All contestants have such memory: from malloc, touched before.
  auto* numbers = static_cast<float*>(std::aligned_alloc(4096, (count * 4 + 4095) / 4096 * 4096));
  std::fill(numbers, numbers + count, 0.0f);
  return {numbers, count};
}

void run_rank(const team_run& run, kernels::team_memory& memory, std::size_t rank,
              std::size_t count) {
  auto loop = run.loop;
  loop.rank = rank;
  std::span<float> numbers;
  if (run.memory == "shared")
    numbers = memory.room(static_cast<std::uint32_t>(rank)).first(count);
  else
    numbers = private_numbers(count);
  std::ranges::fill(numbers, 0.0f);
  kernels::team_member member{memory, static_cast<std::uint32_t>(rank), run.team};
  const std::size_t bytes_max =
    run.memory == "private" ? kernels::team_part_floats * sizeof(float) : SIZE_MAX;
  std::map<std::size_t, kernels::team_plan> plans;
  bench::all_reduce_loop(loop, numbers, [&](std::span<float> part) {
    auto& plan = plans[part.size()];
    if (plan.works.empty())
      plan = kernels::plan_of_sum(static_cast<std::uint32_t>(loop.ranks),
                                  std::min(part.size_bytes(), bytes_max));
    const auto outcome = member.sum(plan, part);
    if (outcome != kernels::team_outcome::done) {
      std::fprintf(stderr, "%s\n", std::string{kernels::text_of(outcome)}.c_str());
      std::exit(1);
    }
  });
}

int run_threads(const team_run& run, std::size_t count) {
  auto memory = *kernels::team_memory::of_threads(static_cast<std::uint32_t>(run.loop.ranks));
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < run.loop.ranks; ++rank)
    threads.emplace_back([&, rank] { run_rank(run, memory, rank, count); });
  for (auto& thread : threads)
    thread.join();
  return 0;
}

int run_processes(const team_run& run, std::size_t count) {
  const auto ranks = static_cast<std::uint32_t>(run.loop.ranks);
  auto memory = *kernels::team_memory::of_processes(ranks, run.memory == "shared" ? count : 0);
  return bench::in_processes(ranks, [&](std::size_t rank) { run_rank(run, memory, rank, count); });
}

} // namespace

int main(int argc, char** argv) {
  team_run run;
  unsigned spin_us = 50;
  CLI::App app{"Adds up in memory, as a contestant of all_reduce.py", "all_reduce_team"};
  bench::add_options(app, run.loop);
  app.add_option("--memory", run.memory, "Where the numbers are: of threads, or of processes")
    ->check(CLI::IsMember({"threads", "shared", "private"}));
  app.add_option("--spin", spin_us, "Microseconds that a rank looks before it sleeps");
  CLI11_PARSE(app, argc, argv);
  run.team.wait.spin = std::chrono::microseconds{spin_us};
  run.team.wait.yield = run.loop.ranks > std::thread::hardware_concurrency();
  run.loop.contestant = "troupe-" + run.memory + (run.team.wait.spin.count() == 0 ? "-asleep" : "");
  run.loop.ranks_are = run.memory == "threads" ? "threads" : "processes";
  const std::size_t count = std::ranges::max(run.loop.sizes) / sizeof(float) + 16;
  return run.memory == "threads" ? run_threads(run, count) : run_processes(run, count);
}
