// Measures the kernels' CUDA versions, next to a copy within the device's memory that moves as many
// bytes. Rounds alternate between the copy and the kernel.
//
//   cuda_bench [--full] [--json] [--emulate] [--device N]
//
// GB/s counts bytes read and bytes written. If there is no device, a line says so. --emulate runs
// on the host: this shows that the benchmark works, and measures no speed.
#include "bench/options.hpp"
#include "bench/report.hpp"
#include "kernels/devices/emulated_platform.hpp"
#include "kernels/devices/memory.hpp"
#include "kernels/half.hpp"
#include "kernels/int8.hpp"
#include "kernels/onebit.hpp"
#include "kernels/optimizer.hpp"
#include "kernels/sparsify.hpp"
#include "kernels/vector_ops.hpp"

#include "CLI/CLI.hpp"
#include "fmt/core.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace troupe;

template <class T>
T must(result<T> outcome) {
  if (!outcome)
    throw std::runtime_error{outcome.error().text};
  return *std::move(outcome);
}

class device_bench {
public:
  device_bench(device_platform& on, std::uint32_t device, std::size_t rounds)
      : on_(on), device_(device), rounds_(rounds), stream_(must(make_stream(on, device))),
        begin_(must(make_event(on, device))), end_(must(make_event(on, device))) {}

  const kernels::stream& stream() const { return stream_.get(); }

  device_memory<float> floats(std::size_t count) {
    auto made = must(make_memory<float>(on_, device_, count));
    on_.clear(stream(), made.data(), count * sizeof(float));
    return made;
  }

  template <class T>
  device_memory<T> upload(const std::vector<T>& values) {
    auto made = must(make_memory<T>(on_, device_, values.size()));
    const auto here = must(make_pinned<T>(on_, values.size()));
    std::ranges::copy(values, here.data());
    on_.copy(stream(), made.data(), here.data(), values.size() * sizeof(T));
    wait();
    return made;
  }

  /// Returns floats of `least` to `least` + 1 in any order: a device may be faster with zeros.
  device_memory<float> any_floats(std::size_t count, float least = -0.5f) {
    std::vector<float> any(count);
    for (float& x : any)
      x = static_cast<float>(random_()) * 0x1p-32f + least;
    return upload(any);
  }

  bench::row measure(const std::string& name, std::size_t bytes, std::size_t calls,
                     const std::function<void()>& enqueue) {
    const auto from = floats(bytes / 8), to = floats(bytes / 8);
    const auto copy = [&] { on_.copy(stream(), to.data(), from.data(), bytes / 2); };
    ms_of(calls, enqueue); // Warm-up: the code is loaded with the first launch.
    ms_of(calls, copy);
    std::vector<double> rates, copied, ratios;
    for (std::size_t round = 0; round < rounds_; ++round) {
      const double copying = ms_of(calls, copy), working = ms_of(calls, enqueue);
      const double all = static_cast<double>(bytes * calls) * 1e-6;
      rates.push_back(all / working);
      copied.push_back(all / copying);
      ratios.push_back(copying / working);
    }
    bench::row row;
    row.text("kernel", "kernel", name)
      .hidden("bytes", bytes)
      .range("gb_per_s", "GB/s", bench::spread_of(rates), 1)
      .range("copy_gb_per_s", "copy, GB/s", bench::spread_of(copied), 1)
      .range("ratio", "ratio to copy", bench::spread_of(ratios), 2);
    return row;
  }

private:
  void wait() {
    if (auto done = on_.synchronize(stream()); !done)
      throw std::runtime_error{done.error().text};
  }

  double ms_of(std::size_t calls, const std::function<void()>& enqueue) {
    on_.record(stream(), begin_.get());
    for (std::size_t call = 0; call < calls; ++call)
      enqueue();
    on_.record(stream(), end_.get());
    wait();
    return on_.elapsed_ms(begin_.get(), end_.get());
  }

  device_platform& on_;
  std::uint32_t device_;
  std::size_t rounds_;
  owned_stream stream_;
  owned_event begin_, end_;
  std::mt19937 random_{42};
};

/// Measures the kernels that turn floats into fewer bits, and back.
void measure_compression(std::vector<bench::row>& rows, device_bench& at, device_platform& on,
                         std::uint32_t device, std::size_t count, std::size_t calls) {
  const auto x = at.any_floats(count), y = at.floats(count);
  const auto halves = must(make_memory<std::uint16_t>(on, device, count));
  const auto eighths = must(make_memory<std::int8_t>(on, device, count));
  const auto bits = must(make_memory<std::uint8_t>(on, device, count / 8));
  const auto scales = at.floats(count / kernels::int8_block);
  const auto means = at.floats(2 * count / kernels::onebit_block);
  const kernels::stream& stream = at.stream();
  const auto line = [&](const char* name, std::size_t bytes, const std::function<void()>& enqueue) {
    rows.push_back(at.measure(name, bytes, calls, enqueue));
  };
  line("to_fp16", 6 * count, [&] { kernels::to_fp16(stream, x.span(), halves.span()); });
  line("from_fp16", 6 * count, [&] { kernels::from_fp16(stream, halves.span(), y.span()); });
  line("to_bf16", 6 * count, [&] { kernels::to_bf16(stream, x.span(), halves.span()); });
  line("from_bf16", 6 * count, [&] { kernels::from_bf16(stream, halves.span(), y.span()); });
  line("to_int8", 5 * count,
       [&] { kernels::to_int8(stream, x.span(), eighths.span(), scales.span()); });
  line("to_int8_stochastic", 5 * count,
       [&] { kernels::to_int8_stochastic(stream, x.span(), 5, eighths.span(), scales.span()); });
  line("from_int8", 5 * count,
       [&] { kernels::from_int8(stream, eighths.span(), scales.span(), y.span()); });
  line("to_onebit", 12 * count + count / 8,
       [&] { kernels::to_onebit(stream, x.span(), y.span(), bits.span(), means.span()); });
  line("from_onebit", 4 * count + count / 8,
       [&] { kernels::from_onebit(stream, bits.span(), means.span(), y.span()); });
}

/// Measures the kernels that pick some of many: rows of 64 bytes in any order, the k largest, k at
/// random.
void measure_picks(std::vector<bench::row>& rows, device_bench& at, device_platform& on,
                   std::uint32_t device, std::size_t count, std::size_t calls) {
  const std::size_t k = count / 100;
  const auto x = at.any_floats(count), y = at.floats(count), values = at.floats(k);
  const auto places = must(make_memory<std::uint32_t>(on, device, k));
  const auto scratch = must(make_memory<std::uint32_t>(on, device, kernels::top_k_scratch(count)));
  const kernels::stream& stream = at.stream();
  const auto line = [&](const char* name, std::size_t bytes, const std::function<void()>& enqueue) {
    rows.push_back(at.measure(name, bytes, calls, enqueue));
  };
  line("top_k of 1 %", 12 * count + 8 * k, [&] {
    kernels::top_k(stream, x.span(), y.span(), places.span(), values.span(), scratch.span());
  });
  line("random_k of 1 %", 12 * count + 4 * k,
       [&] { kernels::random_k(stream, x.span(), y.span(), 7, values.span()); });
  line("put_random_k of 1 %", 4 * count + 4 * k,
       [&] { kernels::put_random_k(stream, values.span(), 7, y.span()); });
}

std::vector<bench::row> measure_all(device_platform& on, std::uint32_t device, bool full) {
  device_bench at{on, device, full ? 21u : 3u};
  const std::size_t count = full ? 64u << 20 : 4u << 10, calls = full ? 10 : 1;
  const auto weights = at.any_floats(count), gradient = at.any_floats(count);
  const auto total = at.floats(count);
  const auto partials = must(make_memory<double>(on, device, kernels::partials_max));
  const auto indices = must(make_memory<std::uint64_t>(on, device, kernels::partials_max));
  const auto result = must(make_memory<double>(on, device, 1));
  const auto index = must(make_memory<std::uint64_t>(on, device, 1));
  const auto flag = must(make_memory<std::uint32_t>(on, device, 1));
  std::vector<bench::row> rows;
  const auto step = [&](const char* name, optimizer_kind kind) {
    const std::size_t states = kernels::state_per_weight(kind);
    const auto state = at.any_floats(states * count, 0.0f); // Sums of squares are not negative.
    rows.push_back(at.measure(name, 4 * count * (3 + 2 * states), calls, [&] {
      kernels::optimizer_step(at.stream(), weights.span(), state.span(), weights.span(),
                              state.span(), gradient.span(), {.kind = kind, .step = 9},
                              flag.data());
    }));
  };
  step("sgd", optimizer_kind::sgd);
  step("momentum", optimizer_kind::momentum);
  step("nesterov", optimizer_kind::nesterov);
  step("adagrad", optimizer_kind::adagrad);
  step("adam", optimizer_kind::adam);
  step("adamw", optimizer_kind::adamw);
  step("ftrl", optimizer_kind::ftrl);
  rows.push_back(at.measure("add", 12 * count, calls,
                            [&] { kernels::add(at.stream(), weights.span(), gradient.span()); }));
  const std::span<const float> inputs[] = {weights.span(), gradient.span()};
  rows.push_back(at.measure("sum of 2", 12 * count, calls,
                            [&] { kernels::sum(at.stream(), total.span(), inputs); }));
  rows.push_back(at.measure("axpy", 12 * count, calls, [&] {
    kernels::axpy(at.stream(), weights.span(), 0.5f, gradient.span());
  }));
  rows.push_back(at.measure("scale", 8 * count, calls,
                            [&] { kernels::scale(at.stream(), weights.span(), -1.0f); }));
  rows.push_back(at.measure("clip", 8 * count, calls,
                            [&] { kernels::clip(at.stream(), weights.span(), 0.5f); }));
  const auto some = partials.span().first<kernels::partials_max>();
  float norm = 0.5f;
  rows.push_back(at.measure("clip_by_norm", 12 * count, calls, [&] {
    norm *= 0.9f; // So that the vector is too long each time.
    kernels::clip_by_norm(at.stream(), weights.span(), norm, some, total.data());
  }));
  rows.push_back(at.measure("dot", 8 * count, calls, [&] {
    kernels::dot(at.stream(), weights.span(), gradient.span(), some, result.data());
  }));
  rows.push_back(at.measure("norm", 4 * count, calls, [&] {
    kernels::norm(at.stream(), gradient.span(), some, result.data());
  }));
  rows.push_back(at.measure("squared_norm", 4 * count, calls, [&] {
    kernels::squared_norm(at.stream(), gradient.span(),
                          partials.span().first<kernels::partials_max>(), result.data());
  }));
  rows.push_back(at.measure("first_non_finite", 4 * count, calls, [&] {
    kernels::first_non_finite(at.stream(), gradient.span(),
                              indices.span().first<kernels::partials_max>(), index.data());
  }));
  measure_compression(rows, at, on, device, count, calls);
  measure_picks(rows, at, on, device, count, calls);
  return rows;
}

} // namespace

int main(int argc, char** argv) {
  CLI::App app{"Speed of the kernels on a CUDA device"};
  bool full = false, json = false, emulate = false;
  std::uint32_t device = 0;
  app.add_flag("--full", full, "64 Mi floats, 21 rounds");
  app.add_flag("--json", json, "One object a line");
  app.add_flag("--emulate", emulate, "On the host: shows that the benchmark works");
  app.add_option("--device", device, "Which device")->capture_default_str();
  if (const auto status = bench::parse(app, argc, argv))
    return *status;
  try {
    std::unique_ptr<device_platform> on;
    if (emulate) {
      on = emulate_devices({});
    } else {
      auto cuda = open_cuda();
      if (!cuda) {
        fmt::print("not run on a GPU: {}\n", cuda.error().text);
        return 0;
      }
      on = *std::move(cuda);
    }
    const auto info = must(on->describe(device));
    bench::print(fmt::format("kernels on device {}: {}", device, info.name),
                 measure_all(*on, device, full), json);
  } catch (const std::exception& problem) {
    fmt::print(stderr, "cuda_bench: {}\n", problem.what());
    return 1;
  }
}
