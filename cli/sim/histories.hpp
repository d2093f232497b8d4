// Runs many histories of one kind of world, each a function of its seed, and counts their events.
#pragma once

#include "cli/sim/world.hpp"

#include "fmt/core.h"

#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace troupe::sim {

struct history_options {
  std::uint64_t first = 1;
  std::uint64_t last = 0;
  unsigned threads = 1;
  bool no_faults = false;
};

struct failed_seed {
  std::string_view world;
  std::uint64_t seed = 0;
  std::string what;
};

/// The counts of all histories of one kind.
template <class World>
struct kind_tally {
  typename World::tally counts;
  std::uint64_t histories = 0;

  void add(const typename World::tally& other) {
    counts.events += other.events;
    for (const auto& each : World::minima)
      counts.*each.count += other.*each.count;
  }
};

template <class World>
struct outcome {
  std::array<kind_tally<World>, World::kinds.size()> kinds;
  std::optional<failed_seed> failed; ///< The smallest failed seed that was seen.

  std::uint64_t histories() const {
    std::uint64_t all = 0;
    for (const auto& each : kinds)
      all += each.histories;
    return all;
  }
  std::uint64_t events() const {
    std::uint64_t all = 0;
    for (const auto& each : kinds)
      all += each.counts.events;
    return all;
  }
};

/// Each seed that this number divides is run twice: both runs must be the same history.
constexpr std::uint64_t repeat_interval = 1000;
/// With fewer histories of a kind, averages are not checked.
constexpr std::uint64_t histories_for_minima = 80;

template <class World>
std::optional<failed_seed> run_seed(std::uint64_t seed, bool no_faults, outcome<World>& all) {
  try {
    World one{seed, no_faults};
    auto& kind = all.kinds[one.kind()];
    ++kind.histories;
    one.run();
    kind.add(one.counted());
    if (seed % repeat_interval == 0) {
      World again{seed, no_faults};
      again.run();
      if (again.hash() != one.hash())
        return failed_seed{World::name, seed, "determinism: two runs of one seed differ"};
    }
    return std::nullopt;
  } catch (const violation& found) {
    return failed_seed{World::name, seed, found.what()};
  }
}

/// Runs all seeds, or stops at the first violation and a few seeds beyond it.
template <class World>
outcome<World> run_histories(const history_options& options) {
  outcome<World> all;
  std::mutex mutex;
  std::atomic<std::uint64_t> begun = 0; // Not the next seed: the largest seed has no successor.
  std::atomic<bool> over = false;
  const auto work = [&] {
    outcome<World> mine;
    while (!over) {
      const std::uint64_t index = begun++;
      if (index > options.last - options.first)
        break;
      const std::uint64_t seed = options.first + index;
      auto failed = run_seed<World>(seed, options.no_faults, mine);
      if (!failed)
        continue;
      over = true;
      const std::lock_guard lock{mutex};
      if (!all.failed || failed->seed < all.failed->seed)
        all.failed = std::move(failed);
    }
    const std::lock_guard lock{mutex};
    for (std::size_t i = 0; i < all.kinds.size(); ++i) {
      all.kinds[i].histories += mine.kinds[i].histories;
      all.kinds[i].add(mine.kinds[i].counts);
    }
  };
  std::vector<std::jthread> threads;
  for (unsigned i = 1; i < options.threads; ++i)
    threads.emplace_back(work);
  work();
  threads.clear();
  return all;
}

/// Returns true if `found` is lower than chance alone explains.
inline bool is_too_few(std::uint64_t found, double expected) {
  return static_cast<double>(found) < expected - 2 * std::sqrt(expected);
}

/// Prints a column for each kind. Returns true if there is enough of everything.
template <class World>
bool show(const outcome<World>& all) {
  bool enough = true;
  if (World::kinds.size() > 1) {
    fmt::print("  {:24}", "");
    for (const auto kind : World::kinds)
      fmt::print(" {:>12}", kind);
    fmt::print("\n");
  }
  for (const auto& [what, count, each, happens_in] : World::minima) {
    fmt::print("  {:24}", what);
    bool too_few = false;
    for (std::size_t i = 0; i < all.kinds.size(); ++i) {
      const auto& kind = all.kinds[i];
      const auto found = kind.counts.*count;
      fmt::print(" {:>12}", found);
      too_few =
        too_few
        || (kind.histories >= histories_for_minima && (happens_in == nullptr || happens_in(i))
            && is_too_few(found, each * static_cast<double>(kind.histories)));
    }
    fmt::print("{}\n", too_few ? fmt::format("  too few, expected {} a history", each) : "");
    enough = enough && !too_few;
  }
  return enough;
}

/// Prints the events of one history as they happen. Returns nullopt if there was no violation.
template <class World>
std::optional<failed_seed> trace_history(std::uint64_t seed, bool no_faults) {
  try {
    World one{seed, no_faults, [](const std::string& line) { fmt::print("{}\n", line); }};
    one.run();
    return std::nullopt;
  } catch (const violation& found) {
    return failed_seed{World::name, seed, found.what()};
  }
}

} // namespace troupe::sim
