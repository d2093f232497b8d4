// Runs a contestant of the all-reduce on one rank: sums of each size, checked once before and once
// after, and timed in between. Rank 0 prints one line of JSON for each size.
#pragma once

#include "CLI/CLI.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <span>
#include <string>
#include <vector>

namespace troupe::bench {

struct all_reduce_options {
  std::string contestant;
  std::string ranks_are; ///< threads or processes.
  std::size_t ranks = 2, rank = 0;
  std::vector<std::size_t> sizes{1024, 65536, 1048576}; ///< Bytes.
  double seconds = 0.2;                                 ///< For each size.
};

/// Declares the options of all contestants.
inline void add_options(CLI::App& app, all_reduce_options& options) {
  app.add_option("--ranks", options.ranks, "Threads or processes")->check(CLI::Range(1, 64));
  app.add_option("--sizes", options.sizes, "Bytes to add up, such as 1024,65536")
    ->delimiter(',')
    ->check(CLI::Range(std::size_t{4}, std::size_t{1} << 32));
  app.add_option("--seconds", options.seconds, "For each size")->check(CLI::PositiveNumber);
}

/// Times `sum(numbers)`, which adds up the numbers of all ranks in place. It also adds up a single
/// number, which is not in `memory`.
/// `memory`: as much as the largest size, touched before.
template <class Sum>
void all_reduce_loop(const all_reduce_options& options, std::span<float> memory, Sum sum) {
  const auto now = [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
  };
  const auto check = [&](std::span<float> numbers) {
    for (std::size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = static_cast<float>((i + 7 * options.rank) % 1009);
    sum(numbers);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      std::size_t expected = 0;
      for (std::size_t rank = 0; rank < options.ranks; ++rank)
        expected += (i + 7 * rank) % 1009;
      if (numbers[i] != static_cast<float>(expected)) {
        std::fprintf(stderr, "%s: wrong sum at %zu of %zu\n", options.contestant.c_str(), i,
                     numbers.size());
        std::abort();
      }
    }
  };
  for (const std::size_t bytes : options.sizes) {
    const auto numbers = memory.first(std::max<std::size_t>(bytes / sizeof(float), 1));
    check(numbers);
    std::ranges::fill(numbers, 0.0f);
    // A sample of small sums is many of them: the cost of reading the clock must not count.
    const std::size_t calls = std::clamp<std::size_t>((4 << 20) / bytes, 1, 100);
    std::vector<double> samples;
    const double begin = now();
    for (bool more = true; more;) {
      const double start = now();
      for (std::size_t call = 0; call < calls; ++call)
        sum(numbers);
      samples.push_back((now() - start) / static_cast<double>(calls));
      // All ranks go on as rank 0 decides.
      float go_on =
        options.rank == 0 && (samples.size() < 4 || now() - begin < options.seconds) ? 1 : 0;
      sum(std::span{&go_on, 1});
      more = go_on > 0;
    }
    check(numbers);
    if (options.rank != 0)
      continue;
    samples.erase(samples.begin()); // Warm-up.
    std::ranges::sort(samples);
    const double median = samples[samples.size() / 2];
    std::printf("{\"contestant\": \"%s\", \"ranks_are\": \"%s\", \"ranks\": %zu, \"bytes\": %zu, "
                "\"us\": %.3f, \"us_min\": %.3f, \"us_max\": %.3f, \"gb_s\": %.4f}\n",
                options.contestant.c_str(), options.ranks_are.c_str(), options.ranks, bytes,
                median * 1e6, samples.front() * 1e6, samples.back() * 1e6,
                static_cast<double>(bytes) / median * 1e-9);
    std::fflush(stdout);
  }
}

} // namespace troupe::bench
