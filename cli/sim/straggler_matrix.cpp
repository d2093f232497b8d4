#include "cli/sim/straggler_matrix.hpp"

#include "cli/sim/straggler_world.hpp"

#include "fmt/core.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace troupe::sim {
namespace {

using random_source = std::mt19937_64;

/// Expected fate of the stragglers of a case.
enum class fate { all_out, nobody_out, open };

/// Another event that must be seen.
enum class sign { none, cluster_slow, detector_sleeps };

struct straggler_case {
  const char* name;
  fate expected;
  void (*prepare)(fleet_options&, random_source&);
  void (*spoil)(straggler_world&, const fleet_options&, random_source&);
  sign seen = sign::none;
};

std::uint32_t pick(random_source& random, std::uint32_t low, std::uint32_t high) {
  return std::uniform_int_distribution<std::uint32_t>(low, high)(random);
}

void any_fleet(fleet_options& options, random_source& random) {
  constexpr double steps[] = {0.2, 0.5, 1.0};
  options.workers = pick(random, 10, 40);
  options.step = steps[pick(random, 0, 2)];
  options.jitter = std::uniform_real_distribution<>(0.05, 0.25)(random);
}

/// Prepares a healthy fleet that runs long enough to have all kinds of steps.
void healthy_fleet(fleet_options& options, random_source& random) {
  constexpr double steps[] = {1.0, 3.0, 10.0, 30.0};
  options.workers = pick(random, 5, 60);
  options.step = steps[pick(random, 0, 3)];
  options.jitter = std::uniform_real_distribution<>(0.05, 0.4)(random);
  options.pauses = options.step / 300; // One each 5 min.
  options.length = 4h;
}

/// Slows one of ten workers, beginning at different times.
void slow_down(straggler_world& fleet, const fleet_options& options, random_source& random,
               double slowness, time_point on_off = 0s) {
  for (std::uint32_t i = 0; i < options.workers / 10; ++i)
    fleet[10 * i] = {
      .slowness = slowness, .from = std::chrono::seconds(pick(random, 120, 600)), .on_off = on_off};
}

constexpr straggler_case cases[] = {
  {"5 times as slow", fate::all_out, any_fleet,
   [](auto& fleet, const auto& options, auto& random) { slow_down(fleet, options, random, 5.0); }},
  {"2 times as slow", fate::open, any_fleet,
   [](auto& fleet, const auto& options, auto& random) { slow_down(fleet, options, random, 2.0); }},
  {"5 times, each other 30 s", fate::all_out, any_fleet,
   [](auto& fleet, const auto& options, auto& random) {
     slow_down(fleet, options, random, 5.0, 30s);
   }},
  {"half of all slow", fate::nobody_out, any_fleet,
   [](auto& fleet, const auto& options, auto&) {
     for (std::uint32_t i = 0; i < options.workers; i += 2)
       fleet[i] = {.slowness = 5.0, .from = 10min};
   },
   sign::cluster_slow},
  {"all slow", fate::nobody_out, any_fleet,
   [](auto& fleet, const auto& options, auto&) {
     for (std::uint32_t i = 0; i < options.workers; ++i)
       fleet[i] = {.slowness = 5.0, .from = 10min};
   },
   sign::cluster_slow},
  {"a slow server", fate::nobody_out, any_fleet,
   [](auto& fleet, const auto& options, auto& random) {
     for (std::uint32_t i = 0; i < options.workers; ++i)
       fleet[i] = {.from = 10min, .blocked = pick(random, 0, 7) == 0 ? 8.0 : 0.5};
   }},
  {"5 times, and a slow detector", fate::all_out,
   [](auto& options, auto& random) {
     any_fleet(options, random);
     options.detector_sleeps = true;
   },
   [](auto& fleet, const auto& options, auto& random) { slow_down(fleet, options, random, 5.0); },
   sign::detector_sleeps},
  {"twice the data in a step", fate::nobody_out, any_fleet,
   [](auto& fleet, const auto&, auto&) { fleet[1].data = 2.0; }},
  {"2 slow of 4", fate::nobody_out,
   [](auto& options, auto& random) {
     any_fleet(options, random);
     options.workers = 4;
   },
   [](auto& fleet, const auto&, auto&) {
     fleet[0] = {.slowness = 5.0, .from = 5min};
     fleet[1] = {.slowness = 5.0, .from = 15min};
   }},
};

straggler_options rules_of(detector_kind kind) {
  straggler_options rules;
  if (kind == detector_kind::oversensitive) {
    rules.slow_ratio = 1.0;
    rules.slow_deviations = 0.5;
    rules.slow_excess = 0ms;
    rules.slow_windows = 1;
    rules.brake_share = 1.0;
  } else if (kind == detector_kind::passive) {
    rules.strongest = straggler_measure::warned;
  }
  return rules;
}

straggler_tally run_fleet(const straggler_case& what, std::uint64_t number,
                          detector_kind detector) {
  random_source random(number * 7919);
  fleet_options options;
  options.detector = rules_of(detector);
  what.prepare(options, random);
  straggler_world fleet(options, random());
  what.spoil(fleet, options, random);
  return fleet.run();
}

void show_first(const straggler_tally& first) {
  constexpr std::size_t shown_max = 4;
  std::string text;
  const auto seconds = [](time_point span) {
    return std::lround(std::chrono::duration<double>(span).count());
  };
  for (const auto& one : first.evictions) {
    if (text.size() > 70 * shown_max)
      break;
    text += fmt::format("{}worker {} at {} s", text.empty() ? "" : ", ", one.worker.value,
                        seconds(one.at));
    if (one.straggler && one.at >= one.slow_since)
      text += fmt::format(" (slow for {} s)", seconds(one.at - one.slow_since));
  }
  if (!text.empty())
    fmt::print("    out in fleet 1: {}\n", text);
}

/// Returns the fault of a case, empty if there is none.
std::string verdict_on(const straggler_case& what, const straggler_tally& all) {
  if (all.healthy_out > 0)
    return "healthy workers were put out";
  if (all.over_budget > 0)
    return "more were out than may be, or too soon";
  if (what.expected == fate::all_out && all.never_out > 0)
    return "stragglers were never put out";
  if (what.expected == fate::all_out && all.stragglers_out == 0)
    return "too little happened: no straggler";
  if (what.expected == fate::nobody_out && all.stragglers_out > 0)
    return "workers were put out though none is to blame";
  if (what.seen == sign::cluster_slow && all.cluster_slow == 0)
    return "nobody was told that the cluster is slow";
  if (what.seen == sign::detector_sleeps && all.sleeps == 0)
    return "too little happened: the detector never slept";
  return {};
}

bool report(const straggler_case& what, const straggler_tally& all, const straggler_tally& first) {
  const auto wrong = verdict_on(what, all);
  fmt::print("{:26} {:>12.0f} {:>12} {:>10} {:>10} {:>10} {:>8} {:>9.0f} s{}{}\n", what.name,
             all.worker_hours, all.steps, all.stragglers, all.stragglers_out, all.never_out,
             all.healthy_out, all.out_after_max, wrong.empty() ? "" : "  WRONG: ", wrong);
  show_first(first);
  std::fflush(stdout);
  return wrong.empty();
}

bool try_healthy(const straggler_trial& trial) {
  const straggler_case what{"healthy", fate::nobody_out, healthy_fleet, [](auto&, auto&, auto&) {}};
  std::mutex mutex;
  straggler_tally all;
  std::atomic<std::uint64_t> next = 1;
  std::atomic<bool> over = false;
  const auto work = [&] {
    while (!over) {
      const auto counted = run_fleet(what, next++, trial.detector);
      const std::lock_guard lock{mutex};
      all.add(counted);
      over = over || all.worker_hours >= trial.healthy_hours || all.healthy_out > 0;
    }
  };
  {
    std::vector<std::jthread> threads;
    for (unsigned i = 1; i < trial.threads; ++i)
      threads.emplace_back(work);
    work();
  }
  const bool right = report(what, all, {});
  return right && all.worker_hours >= trial.healthy_hours;
}

} // namespace

bool try_stragglers(const straggler_trial& trial) {
  fmt::print("{:26} {:>12} {:>12} {:>10} {:>10} {:>10} {:>8} {:>11}\n", "case", "worker-hours",
             "steps", "stragglers", "slow out", "never out", "well out", "within");
  bool right = true;
  for (const auto& what : cases) {
    straggler_tally all;
    straggler_tally first;
    for (std::uint64_t number = 1; number <= trial.fleets; ++number) {
      const auto counted = run_fleet(what, number, trial.detector);
      all.add(counted);
      if (number == 1)
        first = counted;
    }
    right = report(what, all, first) && right;
  }
  right = try_healthy(trial) && right;
  fmt::print("{}\n", right ? "as it should be" : "not as it should be");
  return right;
}

} // namespace troupe::sim
