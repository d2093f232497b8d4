// Speed of the optimiser steps and vector operations, next to a memcpy that moves as many bytes.
// Rounds alternate between the memcpy and the kernel, so that both see the same machine.
//
//   optimizer_bench [--full] [--json]
//
// GB/s counts bytes read and bytes written. The default is a smoke run of small vectors; --full
// measures one block of 1 MiB (in cache) and 64 MiB (in memory) with 11 rounds.
#include "kernels/optimizer.hpp"
#include "kernels/vector_ops.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <new>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace troupe;

/// Cache lines are where the store's blocks begin; a vector that begins elsewhere is slower.
template <class T>
struct line_allocator {
  using value_type = T;
  T* allocate(std::size_t count) {
    return static_cast<T*>(::operator new (count * sizeof(T), std::align_val_t{64}));
  }
  void deallocate(T* memory, std::size_t) { ::operator delete (memory, std::align_val_t{64}); }
  bool operator==(const line_allocator&) const = default;
};
template <class T>
using line_vector = std::vector<T, line_allocator<T>>;

struct spread {
  double median, min, max;
};

spread spread_of(std::vector<double> samples) {
  std::ranges::sort(samples);
  return {samples[samples.size() / 2], samples.front(), samples.back()};
}

struct row {
  std::string name;
  std::size_t count;
  std::size_t bytes; ///< Read and written by one call.
  spread gigabytes_per_second;
  spread ratio; ///< To the memcpy of the same round.
  double checksum;
};

double seconds_of(std::size_t calls, const std::function<double()>& body, double& checksum) {
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t call = 0; call < calls; ++call)
    checksum += body();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  return elapsed.count();
}

row measure(std::string name, std::size_t count, std::size_t bytes, std::size_t rounds,
            std::size_t calls, const std::function<double()>& body) {
  const line_vector<char> from(bytes / 2, 1);
  line_vector<char> to(bytes / 2, 2);
  const auto copy = [&] {
    std::memcpy(to.data(), from.data(), from.size());
    // Keeps the compiler from dropping a copy that the next one overwrites.
    asm volatile("" : : "r"(to.data()) : "memory");
    return static_cast<double>(to[to.size() / 2]);
  };
  double checksum = 0, ignored = 0;
  checksum += body(); // Warm-up: page faults, caches.
  ignored += copy();
  std::vector<double> rates, ratios;
  for (std::size_t round = 0; round < rounds; ++round) {
    const double copying = seconds_of(calls, copy, ignored);
    const double working = seconds_of(calls, body, checksum);
    rates.push_back(static_cast<double>(bytes * calls) / working * 1e-9);
    ratios.push_back(copying / working);
  }
  return {std::move(name), count, bytes, spread_of(rates), spread_of(ratios), checksum};
}

void measure_all(std::vector<row>& rows, std::size_t count, std::size_t rounds, std::size_t calls) {
  std::mt19937 random{42};
  const auto values = [&](std::size_t size) {
    line_vector<float> result(size);
    for (float& x : result)
      x = static_cast<float>(random()) * 0x1p-32f; // Positive: also a state.
    return result;
  };
  const auto weights = values(count), gradient = values(count), state = values(2 * count);
  auto new_weights = values(count), new_state = values(2 * count);
  const auto step = [&](const char* name, kernels::optimizer kind) {
    const std::size_t states = kernels::state_per_weight(kind);
    rows.push_back(measure(name, count, 4 * count * (3 + 2 * states), rounds, calls, [&] {
      const bool finite = kernels::optimizer_step(
        new_weights, std::span{new_state}.first(states * count), weights,
        std::span{state}.first(states * count), gradient, {.kind = kind, .rate = 1e-3f, .step = 9});
      return finite ? static_cast<double>(new_weights[count / 2]) : 1e9;
    }));
  };
  step("sgd", kernels::optimizer::sgd);
  step("momentum", kernels::optimizer::momentum);
  step("adagrad", kernels::optimizer::adagrad);
  step("adam", kernels::optimizer::adam);
  rows.push_back(measure("add", count, 12 * count, rounds, calls, [&] {
    kernels::add(new_weights, gradient);
    return static_cast<double>(new_weights[count / 2]);
  }));
  rows.push_back(measure("squared_norm", count, 4 * count, rounds, calls,
                         [&] { return kernels::squared_norm(gradient); }));
  rows.push_back(measure("first_non_finite", count, 4 * count, rounds, calls,
                         [&] { return static_cast<double>(kernels::first_non_finite(gradient)); }));
}

void print(const std::vector<row>& rows, bool json) {
  if (!json)
    std::printf("%-17s %9s  %-24s  %s\n", "kernel", "floats", "GB/s median (min..max)",
                "ratio to memcpy, median (min..max)");
  std::printf("%s", json ? "[" : "");
  const char* separator = "";
  for (const row& r : rows) {
    const spread& g = r.gigabytes_per_second;
    if (json)
      std::printf("%s\n  {\"kernel\": \"%s\", \"floats\": %zu, \"bytes\": %zu, \"gb_per_s\": "
                  "{\"median\": %.3f, \"min\": %.3f, \"max\": %.3f}, \"ratio_to_memcpy\": "
                  "{\"median\": %.3f, \"min\": %.3f, \"max\": %.3f}, \"checksum\": %.9g}",
                  separator, r.name.c_str(), r.count, r.bytes, g.median, g.min, g.max,
                  r.ratio.median, r.ratio.min, r.ratio.max, r.checksum);
    else
      std::printf("%-17s %9zu  %6.1f (%5.1f..%5.1f)      %.2f (%.2f..%.2f)\n", r.name.c_str(),
                  r.count, g.median, g.min, g.max, r.ratio.median, r.ratio.min, r.ratio.max);
    separator = ",";
  }
  std::printf("%s", json ? "\n]\n" : "");
}

} // namespace

int main(int argc, char** argv) {
  bool full = false, json = false;
  for (const std::string_view argument : std::vector<std::string_view>(argv + 1, argv + argc)) {
    full = full || argument == "--full";
    json = json || argument == "--json";
    if (argument != "--full" && argument != "--json") {
      std::fprintf(stderr, "unknown argument: %s\n", argument.data());
      return 1;
    }
  }
  std::vector<row> rows;
  if (full) {
    measure_all(rows, 256 << 10, 11, 32);
    measure_all(rows, 16 << 20, 11, 1);
  } else {
    measure_all(rows, 4 << 10, 5, 4);
  }
  print(rows, json);
}
