#include "cli/plan/machine.hpp"

#include "cli/plan/units.hpp"

#include "fmt/format.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <system_error>
#include <thread>
#include <vector>

namespace troupe::planning {

namespace {

using clock = std::chrono::steady_clock;

double seconds_since(clock::time_point begin) {
  return std::chrono::duration<double>(clock::now() - begin).count();
}

constexpr std::size_t floats = std::size_t{4} << 20; // 16 MiB a buffer: not in a thread's caches.
constexpr int rounds = 9;

/// Returns the seconds of the fastest round in which each thread adds one buffer to another.
double seconds_of_adds(std::uint32_t threads) {
  std::vector<double> times;
  clock::time_point begin;
  std::barrier round(threads, [&]() noexcept {
    if (begin != clock::time_point{})
      times.push_back(seconds_since(begin));
    begin = clock::now();
  });
  const auto add = [&round] {
    std::vector<float> from(floats, 1.0f), to(floats, 2.0f);
    for (int r = 0; r < rounds; ++r) {
      round.arrive_and_wait();
      for (std::size_t j = 0; j < floats; ++j)
        to[j] += from[j];
      std::atomic_signal_fence(std::memory_order_seq_cst); // Keeps every round.
    }
    round.arrive_and_wait();
  };
  std::vector<std::jthread> all;
  try {
    while (all.size() < threads)
      all.emplace_back(add);
  } catch (const std::system_error&) { // No further thread starts: release those that wait.
    for (auto i = all.size(); i < threads; ++i)
      round.arrive_and_drop();
    throw;
  }
  all.clear();
  return *std::ranges::min_element(times);
}

double seconds_of_wake_up() {
  constexpr int turns = 400;
  std::atomic<int> turn = 0;
  std::jthread other([&turn] {
    for (int i = 0; i < turns; ++i) {
      turn.wait(2 * i);
      turn = 2 * i + 2;
      turn.notify_one();
    }
  });
  const auto begin = clock::now();
  for (int i = 0; i < turns; ++i) {
    turn = 2 * i + 1;
    turn.notify_one();
    turn.wait(2 * i + 1);
  }
  return seconds_since(begin) / (2 * turns);
}

} // namespace

kernels::topology measure_machine() {
  const auto threads = std::max(std::thread::hardware_concurrency(), 2u);
  constexpr double bytes = floats * sizeof(float);
  const double one = bytes / seconds_of_adds(1);
  const double all = std::max(one, threads * bytes / seconds_of_adds(threads));
  const double latency = seconds_of_wake_up();
  kernels::topology net{
    "machine",
    fmt::format(
      "{} threads of this machine, measured now: one adds {}, all together {}; wake-up {}", threads,
      show_rate(one), show_rate(all), show_seconds(latency)),
    {},
    {}};
  for (std::uint32_t i = 0; i < threads; ++i)
    net.nodes.push_back({fmt::format("thread{}", i), kernels::node_kind::device, 0});
  net.nodes.push_back({"memory", kernels::node_kind::host, all});
  for (std::uint32_t i = 0; i < threads; ++i)
    net.links.push_back({i, threads, one, latency / 2, true}); // A path crosses two links.
  return net;
}

} // namespace troupe::planning
