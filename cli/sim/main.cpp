// The program `troupe_sim`, run by `troupe sim`: histories of a simulated cluster, one for each
// seed. Built with planted mistakes (actors/mutation.hpp), of which one at a time can be let loose.
#include "actors/mutation.hpp"
#include "cli/sim/chain_world.hpp"
#include "cli/sim/straggler_matrix.hpp"

#include "CLI/CLI.hpp"
#include "fmt/core.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

namespace {

using namespace troupe;

struct sim_options {
  std::uint64_t first = 1;
  std::uint64_t last = 5000;
  unsigned threads = std::max(1u, std::thread::hardware_concurrency());
  bool calm = false;
  bool trace = false;
  bool mutants = false;
  std::string mutant;
  bool stragglers = false;
  sim::straggler_trial trial;
};

struct failed_seed {
  std::uint64_t seed = 0;
  std::string what;
};

struct outcome {
  sim::tally counts;
  std::uint64_t seeds = 0;
  std::optional<failed_seed> failed; ///< The smallest one that was seen.
};

/// Every so many seeds one is run twice: both must be the same history.
constexpr std::uint64_t repeat_interval = 1000;

std::optional<failed_seed> run_seed(std::uint64_t seed, bool calm, sim::tally& counts) {
  try {
    sim::chain_world world{seed, calm};
    world.run();
    counts.add(world.counted());
    if (seed % repeat_interval == 0) {
      sim::chain_world again{seed, calm};
      again.run();
      if (again.hash() != world.hash())
        return failed_seed{seed, "determinism: two runs of one seed differ"};
    }
    return std::nullopt;
  } catch (const sim::violation& found) {
    return failed_seed{seed, found.what()};
  }
}

/// Up to the first violation, or a few seeds beyond it.
outcome run_seeds(const sim_options& options) {
  outcome all;
  std::mutex mutex;
  std::atomic<std::uint64_t> next = options.first;
  std::atomic<bool> over = false;
  const auto work = [&] {
    sim::tally counts;
    std::uint64_t seeds = 0;
    while (!over) {
      const std::uint64_t seed = next++;
      if (seed > options.last)
        break;
      ++seeds;
      auto failed = run_seed(seed, options.calm, counts);
      if (!failed)
        continue;
      over = true;
      const std::lock_guard lock{mutex};
      if (!all.failed || failed->seed < all.failed->seed)
        all.failed = std::move(failed);
    }
    const std::lock_guard lock{mutex};
    all.counts.add(counts);
    all.seeds += seeds;
  };
  std::vector<std::jthread> threads;
  for (unsigned i = 1; i < options.threads; ++i)
    threads.emplace_back(work);
  work();
  threads.clear();
  return all;
}

/// What a history has on average at least, where the simulator does what it is for.
struct minimum {
  const char* what;
  std::uint64_t sim::tally::*count;
  double each;
};
constexpr minimum minima[] = {
  {"pushes acknowledged", &sim::tally::pushes, 200},
  {"pushes repeated", &sim::tally::repeats, 5},
  {"reads answered", &sim::tally::reads, 100},
  {"servers killed", &sim::tally::kills, 2},
  {"servers paused", &sim::tally::pauses, 2},
  {"connections cut", &sim::tally::cuts, 2},
  {"coordinators killed", &sim::tally::coordinator_kills, 2},
  {"configurations", &sim::tally::configurations, 5},
  {"replicas copied", &sim::tally::copies, 1},
  {"chains lost", &sim::tally::lost_chains, 0.02},
  {"servers drained", &sim::tally::drains, 1},
  {"servers added", &sim::tally::additions, 0.5},
  {"chains moved", &sim::tally::moves, 0.3},
  {"rollbacks", &sim::tally::rollbacks, 0.2},
  {"servers deaf", &sim::tally::deaf, 1},
  {"cuts that last", &sim::tally::lasting_cuts, 0.1},
};
/// Fewer seeds say nothing about averages.
constexpr std::uint64_t seeds_for_minima = 200;

int check(const sim_options& options) {
  const auto begin = std::chrono::steady_clock::now();
  const auto all = run_seeds(options);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  fmt::print("{} {} in {:.1f} s, {:.0f} a second; {} events\n", all.seeds,
             all.seeds == 1 ? "history" : "histories", took.count(),
             static_cast<double>(all.seeds) / took.count(), all.counts.events);
  bool enough = true;
  for (const auto& [what, count, each] : minima) {
    const auto found = all.counts.*count;
    const bool too_few = all.seeds >= seeds_for_minima
                         && static_cast<double>(found) < each * static_cast<double>(all.seeds);
    enough = enough && !too_few;
    fmt::print("  {:20} {:>12}{}\n", what, found,
               too_few ? fmt::format("  too few, expected {} a history", each) : "");
  }
  if (all.failed) {
    fmt::print("seed {}: {}\n  troupe sim --seeds {}{}{} --trace   shows how\n", all.failed->seed,
               all.failed->what, all.failed->seed, options.mutant.empty() ? "" : " --mutant ",
               options.mutant);
    return EXIT_FAILURE;
  }
  fmt::print("{}\n", enough ? "no violation" : "no violation, but too little happened");
  return enough ? EXIT_SUCCESS : EXIT_FAILURE;
}

int trace(std::uint64_t seed, bool calm) {
  sim::chain_world world{seed, calm, [](const std::string& line) { fmt::print("{}\n", line); }};
  try {
    world.run();
    fmt::print("seed {}: no violation\n", seed);
    return EXIT_SUCCESS;
  } catch (const sim::violation& found) {
    fmt::print("seed {}: {}\n", seed, found.what());
    return EXIT_FAILURE;
  }
}

int try_mutants(const sim_options& options) {
  std::size_t caught = 0, harmless = 0;
  for (const mutation_entry& each : mutations) {
    planted = each.value;
    const bool is_harmless = !each.harmless_because.empty();
    auto chosen = options;
    if (is_harmless) // An argument that is wrong is wrong soon, most likely.
      chosen.last = options.first + (options.last - options.first) / 10;
    const auto all = run_seeds(chosen);
    if (all.failed) {
      caught += is_harmless ? 0 : 1;
      fmt::print("{:28} seed {:>6}  {}{}\n", each.name, all.failed->seed, all.failed->what,
                 is_harmless ? ", though it was said to be harmless" : "");
    } else if (is_harmless) {
      ++harmless;
      fmt::print("{:28} harmless: {}\n", each.name, each.harmless_because);
    } else {
      fmt::print("{:28} not caught in {} seeds\n", each.name, all.seeds);
    }
    std::fflush(stdout);
  }
  planted = mutation::none;
  fmt::print("{} mistakes: {} caught, {} harmless, {} not as they should be\n", mutations.size(),
             caught, harmless, mutations.size() - caught - harmless);
  return caught + harmless == mutations.size() ? EXIT_SUCCESS : EXIT_FAILURE;
}

bool plant(const std::string& name) {
  const auto found = std::ranges::find(mutations, std::string_view{name}, &mutation_entry::name);
  if (found == mutations.end())
    return false;
  planted = found->value;
  return true;
}

bool read_number(std::string_view digits, std::uint64_t& to) {
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), to);
  return problem == std::errc{} && end == digits.data() + digits.size();
}

/// "7" or "1..5000". Returns what is wrong with it.
std::string read_seeds(const std::string& text, sim_options& options) {
  const auto dots = text.find("..");
  const std::string_view all{text};
  const bool good = dots == std::string::npos
                      ? read_number(all, options.first) && read_number(all, options.last)
                      : read_number(all.substr(0, dots), options.first)
                          && read_number(all.substr(dots + 2), options.last);
  return good && options.first <= options.last ? "" : "needs a number or FIRST..LAST";
}

void declare_stragglers(CLI::App& app, sim_options& options) {
  auto* const flag =
    app.add_flag("--stragglers", options.stragglers,
                 "Instead: fleets of workers that are slow in many ways, before the judge");
  app
    .add_option("--worker-hours", options.trial.healthy_hours, "With --stragglers: of healthy ones")
    ->needs(flag)
    ->check(CLI::Range(1.0, 1e9))
    ->capture_default_str();
  auto* const careless = app.add_flag_callback(
    "--careless", [&] { options.trial.judge = sim::judge_kind::careless; },
    "With --stragglers: a judge without tolerance, which has to be noticed");
  auto* const timid = app.add_flag_callback(
    "--timid", [&] { options.trial.judge = sim::judge_kind::timid; },
    "With --stragglers: a judge that uses no force, which has to be noticed");
  careless->needs(flag)->excludes(timid);
  timid->needs(flag);
}

} // namespace

int main(int argc, char** argv) {
  sim_options options;
  CLI::App app{
    "Histories of a simulated cluster, each a function of its seed: servers, coordinator and\n"
    "network fail for 20 s, then everything has to come to rest with nothing lost or doubled.",
    "troupe sim"};
  app
    .add_option_function<std::string>(
      "--seeds", [](const std::string&) {}, "One seed, or FIRST..LAST")
    ->check([&](const std::string& text) { return read_seeds(text, options); })
    ->type_name("N|A..B")
    ->default_str("1..5000");
  app.add_option("--threads", options.threads, "Histories at a time")
    ->check(CLI::Range(1u, 1024u))
    ->capture_default_str();
  app.add_flag("--calm", options.calm, "Without faults: shows that their number is checked");
  auto* const trace_flag =
    app.add_flag("--trace", options.trace, "Tell what happens in the first seed");
  auto* const all = app.add_flag("--mutants", options.mutants,
                                 "For each planted mistake, the first seed that notices it");
  all->excludes(trace_flag);
  app.add_option("--mutant", options.mutant, "Run with this planted mistake")->excludes(all);
  declare_stragglers(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& problem) {
    fmt::print(stderr, "troupe sim: {} (see troupe sim --help)\n", problem.what());
    return 2;
  }
  if (!options.mutant.empty() && !plant(options.mutant)) {
    fmt::print(stderr, "troupe sim: no mistake is called '{}' (see troupe sim --mutants)\n",
               options.mutant);
    return 2;
  }
  if (options.stragglers) {
    options.trial.threads = options.threads;
    return sim::try_stragglers(options.trial) ? EXIT_SUCCESS : EXIT_FAILURE;
  }
  if (options.trace)
    return trace(options.first, options.calm);
  return options.mutants ? try_mutants(options) : check(options);
}
