// Measures the kernels, next to the memory of this machine and to other implementations.
//
// GB/s counts bytes read and bytes written. In each round, before each contestant, two plain uses
// of memory are measured on vectors of the same length: a memcpy, and a loop that adds two vectors
// into a third. A ratio is to the faster of the two in GB/s.
#include "bench/kernels/kernel_contest.hpp"
#include "bench/machine_load.hpp"
#include "bench/options.hpp"
#include "bench/report.hpp"

#include "CLI/CLI.hpp"
#include "fmt/core.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>

namespace troupe::bench {

kernel_memory::kernel_memory(std::size_t floats) : count(floats), bytes(4 * floats) {
  std::mt19937 random{42};
  for (std::size_t i = 0; i < vectors; ++i)
    for (auto& x = v.emplace_back(count); float& value : x)
      value = static_cast<float>(random()) * 0x1p-32f;
}

namespace {

struct options {
  bool full = false, json = false, any_load = false;
  std::size_t rounds = 5;
  std::vector<std::size_t> sizes; ///< Bytes of a vector.
  std::vector<std::string> only;
};

/// Returns GB/s over enough calls, after one call that fills the caches.
template <class Body>
double rate(double bytes, const Body& body) {
  const auto calls = static_cast<std::size_t>(std::max(1.0, 16e6 / bytes));
  body();
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t call = 0; call < calls; ++call) {
    body();
    asm volatile("" : : : "memory"); // Keeps writes that the next call overwrites.
  }
  const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - start;
  return bytes * static_cast<double>(calls) / elapsed.count();
}

/// The plain uses of memory, on vectors of their own: the kernels' vectors stay as they were.
class yardstick {
public:
  explicit yardstick(std::size_t count) : from_(count, 1.0f), other_(count, 2.0f), to_(count) {}

  double copy() {
    return rate(8.0 * static_cast<double>(to_.size()),
                [this] { std::memcpy(to_.data(), from_.data(), to_.size() * sizeof(float)); });
  }
  double add() {
    return rate(12.0 * static_cast<double>(to_.size()), [this] {
      for (std::size_t i = 0; i < to_.size(); ++i)
        to_[i] = from_[i] + other_[i];
    });
  }

private:
  line_vector<float> from_, other_, to_;
};

struct figures {
  std::vector<double> rates, ratios;
};

std::vector<row> measure(const options& asked, std::size_t size) {
  kernel_memory memory{size / sizeof(float)};
  kernel_contest contest;
  add_troupe(contest, memory);
  add_functions(contest, memory);
  add_codecs(contest, memory);
  add_loops(contest, memory);
#ifdef TROUPE_BENCH_OPENBLAS
  add_openblas(contest, memory);
#endif
#ifdef TROUPE_BENCH_EIGEN
  add_eigen(contest, memory);
#endif
  std::vector<kernel_contest::entry> entries;
  std::ranges::copy_if(contest.entries(), std::back_inserter(entries), [&](const auto& x) {
    return asked.only.empty() || std::ranges::find(asked.only, x.kernel) != asked.only.end();
  });
  // Puts a kernel's contestants side by side, in the place of the first one.
  std::ranges::stable_sort(entries, {}, [all = contest.entries()](const auto& x) {
    return std::ranges::find(all, x.kernel, &kernel_contest::entry::kernel) - all.begin();
  });
  yardstick plain{memory.count};
  (void)plain.copy(), (void)plain.add();
  for (const auto& x : entries)
    x.run();
  std::vector<figures> found(entries.size());
  figures copies, adds;
  for (std::size_t round = 0; round < asked.rounds; ++round)
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const double copy = plain.copy(), add = plain.add(), best = std::max(copy, add);
      const double own = rate(entries[i].bytes * static_cast<double>(memory.count), entries[i].run);
      found[i].rates.push_back(own), found[i].ratios.push_back(own / best);
      copies.rates.push_back(copy), copies.ratios.push_back(copy / best);
      adds.rates.push_back(add), adds.ratios.push_back(add / best);
    }
  std::vector<row> rows;
  const auto add_row = [&](const auto& kernel, const auto& contestant, const figures& x) {
    rows.push_back(row{}
                     .hidden("size", size)
                     .text("kernel", "kernel", kernel)
                     .text("contestant", "contestant", contestant)
                     .range("gb_s", "GB/s", spread_of(x.rates), 1)
                     .range("ratio", "to memory", spread_of(x.ratios), 2));
  };
  add_row("copy", "memory", copies);
  add_row("add into a third", "memory", adds);
  for (std::size_t i = 0; i < entries.size(); ++i)
    add_row(entries[i].kernel, entries[i].contestant, found[i]);
  return rows;
}

int run(int argc, char** argv) {
  options asked;
  CLI::App app{"Speed of the kernels, next to memory and to others", "kernels_bench"};
  app.add_option("--rounds", asked.rounds, "Rounds; in each every contestant runs once")
    ->check(CLI::Range(std::size_t{1}, std::size_t{1000}))
    ->capture_default_str();
  app.add_flag("--full", asked.full, "In cache, of a block's size, and in memory");
  app.add_flag("--json", asked.json, "Print one JSON object a line");
  app.add_option("--only", asked.only, "Measure this kernel alone (repeatable)");
  app.add_option("--sizes", asked.sizes, "Bytes of a vector, such as 65536,67108864")
    ->delimiter(',')
    ->check(CLI::Range(std::size_t{1024}, std::size_t{1} << 28));
  declare_any_load(app, asked.any_load);
  if (const auto status = parse(app, argc, argv))
    return *status;
  if (asked.sizes.empty())
    asked.sizes = asked.full ? std::vector<std::size_t>{64 << 10, 1 << 20, 64 << 20}
                             : std::vector<std::size_t>{16 << 10};
  require_quiet_machine(asked.any_load);
  for (const std::size_t size : asked.sizes) {
    const double load = busy_processors();
    print_case("vectors of " + size_text(size), measure(asked, size), asked.json, load);
  }
  return 0;
}

} // namespace

} // namespace troupe::bench

int main(int argc, char** argv) {
  try {
    return troupe::bench::run(argc, argv);
  } catch (const std::exception& problem) {
    fmt::print(stderr, "kernels_bench: {}\n", problem.what());
    return 1;
  }
}
