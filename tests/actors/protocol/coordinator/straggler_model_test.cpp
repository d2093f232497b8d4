// Tests the straggler detector in simulated fleets: no healthy worker is put out, the budget holds
// at every moment, and real stragglers are out in time.
#include "cli/sim/straggler_world.hpp"

#include "doctest/doctest.h"

#include <cmath>
#include <random>
#include <vector>

namespace troupe::straggler_model_test {
namespace {

using namespace sim;

#ifdef TROUPE_SANITIZED // Sanitized builds are ten times slower.
constexpr std::uint64_t seeds = 2;
#else
constexpr std::uint64_t seeds = 20;
#endif

/// `prepare(options, random)` chooses a fleet; `spoil(fleet, options, random)` adds its faults.
template <class Prepare, class Spoil>
straggler_tally run_seeds(Prepare prepare, Spoil spoil) {
  straggler_tally all;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    std::mt19937_64 random(seed * 7919);
    fleet_options options;
    prepare(options, random);
    straggler_world one(options, random());
    spoil(one, options, random);
    const auto counted = one.run();
    INFO("seed ", seed);
    CHECK(counted.healthy_out == 0);
    CHECK(counted.over_budget == 0);
    all.add(counted);
  }
  MESSAGE(seeds, " seeds, ", std::llround(all.worker_hours), " worker-hours, ", all.steps,
          " steps; evicted: ", all.healthy_out, " healthy, ", all.stragglers_out,
          " stragglers, at most ", all.out_max, " out at a time, ", all.over_budget,
          " times over the budget; force on healthy: ", all.forced, ", stalled: ", all.stalled,
          ", cluster slow: ", all.cluster_slow, ", detector asleep: ", all.sleeps);
  return all;
}

std::uint32_t pick(std::mt19937_64& random, std::uint32_t low, std::uint32_t high) {
  return std::uniform_int_distribution<std::uint32_t>(low, high)(random);
}

void any_fleet(fleet_options& options, std::mt19937_64& random) {
  options.workers = pick(random, 10, 40);
  options.step = std::vector{0.2, 0.5, 1.0}[pick(random, 0, 2)];
  options.jitter = std::uniform_real_distribution<>(0.05, 0.25)(random);
}

const auto nothing = [](auto&...) {};

/// Makes one worker in ten a straggler, beginning at different times.
auto stragglers(double slowness, time_point on_off = 0s) {
  return [=](straggler_world& one, const fleet_options& options, std::mt19937_64& random) {
    for (std::uint32_t i = 0; i < options.workers / 10; ++i)
      one[10 * i] = {.slowness = slowness,
                     .from = std::chrono::seconds(pick(random, 120, 600)),
                     .on_off = on_off};
  };
}

} // namespace

TEST_CASE("a healthy fleet loses nobody, whatever its size, steps and jitter") {
  const auto all = run_seeds(
    [](fleet_options& options, std::mt19937_64& random) {
      options.workers = pick(random, 5, 60);
      options.step = std::vector{0.5, 1.0, 3.0, 10.0, 30.0}[pick(random, 0, 4)];
      options.jitter = std::uniform_real_distribution<>(0.05, 0.4)(random);
      options.pauses = options.step / 300; // One pause every 5 min.
      options.length = 4h;
    },
    nothing);
  CHECK(all.worker_hours > 50 * static_cast<double>(seeds));
}

TEST_CASE("a straggler of 5 times the others is out within 60 s") {
  const auto all = run_seeds(
    [](fleet_options& options, std::mt19937_64& random) {
      any_fleet(options, random);
      options.pauses = 0.0;
    },
    stragglers(5.0));
  MESSAGE("the slowest case took ", all.out_after_max, " s");
  CHECK(all.stragglers_out > static_cast<int>(seeds));
  CHECK(all.never_out == 0);
  CHECK(all.out_after_max <= 60.0);
}

TEST_CASE("one of 3 times is out as well, one of 2 times, at the limit, or not") {
  for (const auto slowness : {2.0, 3.0}) {
    const auto all = run_seeds(any_fleet, stragglers(slowness));
    if (slowness > 2.0)
      CHECK(all.never_out == 0);
  }
}

TEST_CASE("who is slow each other 30 s is out in the end") {
  const auto all = run_seeds(any_fleet, stragglers(5.0, 30s));
  MESSAGE("the slowest case took ", all.out_after_max, " s");
  CHECK(all.never_out == 0);
}

TEST_CASE("half of the workers slow: nobody is out") {
  const auto all =
    run_seeds(any_fleet, [](straggler_world& one, const fleet_options& options, auto&) {
      for (std::uint32_t i = 0; i < options.workers; i += 2)
        one[i] = {.slowness = 5.0, .from = 10min};
    });
  CHECK(all.stragglers_out == 0);
  CHECK(all.cluster_slow > 0);
}

TEST_CASE("all slow at once: nobody is out") {
  const auto all =
    run_seeds(any_fleet, [](straggler_world& one, const fleet_options& options, auto&) {
      for (std::uint32_t i = 0; i < options.workers; ++i)
        one[i] = {.slowness = 5.0, .from = 10min};
    });
  CHECK(all.stragglers_out == 0);
  CHECK(all.cluster_slow >= static_cast<int>(seeds));
}

TEST_CASE("a slow server blocks everyone, and some more than others: nobody is out") {
  const auto all = run_seeds(
    any_fleet, [](straggler_world& one, const fleet_options& options, std::mt19937_64& random) {
      for (std::uint32_t i = 0; i < options.workers; ++i)
        one[i] = {.from = 10min, .blocked = pick(random, 0, 7) == 0 ? 8.0 : 0.5};
    });
  CHECK(all.forced == 0);
}

TEST_CASE("a judge that oversleeps blames nobody for it, and still finds a straggler") {
  const auto all = run_seeds(
    [](fleet_options& options, std::mt19937_64& random) {
      any_fleet(options, random);
      options.detector_sleeps = true;
    },
    stragglers(5.0));
  CHECK(all.forced == 0);
  CHECK(all.never_out == 0);
  CHECK(all.sleeps > 8 * static_cast<int>(seeds));
}

TEST_CASE("twice the data in a step, in twice the time, is not slow") {
  const auto all = run_seeds(any_fleet, [](straggler_world& one, const fleet_options&, auto&) {
    one[1].data = 2.0;
    one[2].data = 6.0;
  });
  CHECK(all.forced == 0);
}

TEST_CASE("two slow of four: no verdict") {
  const auto all = run_seeds(
    [](fleet_options& options, std::mt19937_64& random) {
      any_fleet(options, random);
      options.workers = 4;
    },
    [](straggler_world& one, const fleet_options&, auto&) {
      one[0] = {.slowness = 5.0, .from = 5min};
      one[1] = {.slowness = 5.0, .from = 15min};
    });
  CHECK(all.stragglers_out == 0);
  CHECK(all.cluster_slow == 0);
}

} // namespace troupe::straggler_model_test
