// Runs a pipeline whose parts wait for a given time and compute nothing. Their idle time is that of
// the schedule, the links and the framework. pipelines.py runs it and prints figures.
#include "troupe/troupe.hpp"

#include "fmt/format.h"

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace {

using std::chrono::steady_clock;
using duration = steady_clock::duration;

/// A thread that slept wakes up 20 to 50 us late, which is 10 % of a short forward. So the end of a
/// wait is polled.
constexpr std::chrono::microseconds polled{60};

/// Describes one part.
struct part_plan {
  duration forward, backward; ///< Of a micro-batch, for any number of samples.
  std::size_t width;          ///< Floats of the output for each sample; 0: this is the last part.
  std::string begins;         ///< File for the times at which batches begin; empty: none.
};

/// Waits, and writes a constant output and gradients of 0.
class waiting_part final : public troupe::part {
public:
  explicit waiting_part(const part_plan& plan) : plan_(plan) {
    ::prctl(PR_SET_TIMERSLACK, 1); // Nanoseconds; 50 us otherwise.
    if (!plan_.begins.empty())
      begins_.open(plan_.begins, std::ios::app); // A successor of this process goes on.
  }

  void forward(const troupe::micro_batch& micro, troupe::const_tensors, std::span<const float>,
               troupe::part_output& out) override {
    const auto now = steady_clock::now();
    if (begins_.is_open() && micro.number == 0)
      begins_ << std::chrono::nanoseconds{now.time_since_epoch()}.count() << std::endl;
    if (plan_.width > 0)
      std::ranges::fill(out.of_width(plan_.width), 1.0f);
    wait_until(now + plan_.forward);
  }

  double backward(const troupe::micro_batch&, troupe::const_tensors, std::span<const float>,
                  std::span<const float>, troupe::mutable_tensors gradients,
                  std::span<float> in_gradient) override {
    const auto now = steady_clock::now();
    for (const auto gradient : gradients)
      std::ranges::fill(gradient, 0.0f);
    std::ranges::fill(in_gradient, 0.0f);
    wait_until(now + plan_.backward);
    return 1.0;
  }

private:
  static void wait_until(steady_clock::time_point end) {
    std::this_thread::sleep_until(end - polled);
    while (steady_clock::now() < end) {
    }
  }

  part_plan plan_;
  std::ofstream begins_;
};

duration milliseconds(double count) {
  return std::chrono::duration_cast<duration>(std::chrono::duration<double, std::milli>{count});
}

} // namespace

int main(int argc, char** argv) {
  std::uint64_t parts = 2, batches = 10, width = 256;
  double forward_ms = 20, backward_ms = 20;
  std::string begins;
  troupe::run_options defaults;
  defaults.workers.count = 1; // One line.
  defaults.epochs = 1;
  troupe::program program{"pipeline_bench", "Runs a pipeline whose parts wait.", defaults};
  program.option("--parts", parts, "Parts of the line", 2, 64);
  program.option("--batches", batches, "Batches of an epoch", 1, 1'000'000);
  program.option("--forward-ms", forward_ms, "Milliseconds of a micro-batch's forward in a part", 0,
                 10'000);
  program.option("--backward-ms", backward_ms, "Milliseconds of its backward", 0, 10'000);
  program.option("--width", width, "Floats between two parts for each sample", 1, 1'000'000);
  program.option("--begins", begins,
                 "Append the time at which each batch begins to this file, ns (default: none)");

  return program.run(argc, argv, [&](const troupe::run_options& options) {
    std::vector<troupe::table_spec> all;
    std::vector<troupe::part_spec> line;
    for (std::uint64_t i = 0; i < parts; ++i) {
      const auto name = fmt::format("w{}", i);
      all.push_back({.name = name, .shape = {16}});
      const part_plan plan{milliseconds(forward_ms), milliseconds(backward_ms),
                           i + 1 == parts ? 0 : width, i == 0 ? begins : ""};
      line.push_back({{name}, [plan] { return std::make_unique<waiting_part>(plan); }});
    }
    troupe::graph g;
    auto store = g.add("model", options.store(all));
    g.add("line", options.pipeline_of(batches * options.batch_samples, line))
      .into(options.stages(), store);
    return g;
  });
}
