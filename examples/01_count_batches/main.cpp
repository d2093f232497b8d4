// The smallest program: a table that counts. Each batch adds 1 to every element, so whatever
// happens to processes on the way, each element must end as the number of batches: no batch lost,
// none applied twice. (bsp takes one step with the mean of a clock's batches, so it counts clocks.)
#include "actors/graph/program.hpp"

#include "CLI/CLI.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>

namespace {

/// sgd at rate 1 subtracts the gradient.
class counting_trainer final : public troupe::trainer {
public:
  double gradient(const troupe::batch&, troupe::const_tensors,
                  troupe::mutable_tensors gradients) override {
    std::ranges::fill(gradients[0], -1.0f);
    return 0.0;
  }
};

/// Accuracy 1 when the count is exact, else 0.
class counting_judge final : public troupe::evaluator {
public:
  explicit counting_judge(std::uint64_t steps) : steps_(static_cast<double>(steps)) {}

  troupe::evaluation evaluate(troupe::const_tensors parameters) override {
    const auto [least, most] = std::ranges::minmax(parameters[0]);
    const bool exact = least == steps_ && most == steps_;
    std::printf("elements count from %.0f to %.0f of %.0f\n", least, most, steps_);
    return {std::max(std::abs(least - steps_), std::abs(most - steps_)), exact ? 1.0 : 0.0, {}};
  }

private:
  double steps_;
};

std::uint64_t divided_up(std::uint64_t number, std::uint64_t by) { return (number + by - 1) / by; }

} // namespace

int main(int argc, char** argv) {
  std::uint64_t elements = 100'000;
  std::uint64_t samples = 10'000;
  troupe::program program{"count_batches", "Counts batches on a cluster that outlives kills."};
  program.command_line()
    .add_option("--elements", elements, "Elements of the table")
    ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{100'000'000}))
    ->capture_default_str();
  program.command_line()
    .add_option("--samples", samples, "Samples of a pass; --batch of them make a batch")
    ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1'000'000'000}))
    ->capture_default_str();

  return program.run(argc, argv, [&](const troupe::run_options& options) {
    troupe::table_spec counts{"counts", {elements}, options.sync, {}, {}};
    counts.optimizer.learning_rate = 1.0f;
    const auto batches = divided_up(samples, options.batch_samples);
    const bool bsp = options.sync.mode == troupe::consistency_mode::bsp;
    const auto steps = options.passes * (bsp ? divided_up(batches, options.workers) : batches);
    if (steps > 1u << 24)
      throw std::runtime_error{"a float counts up to 2^24, not to " + std::to_string(steps)};
    troupe::graph g;
    auto servers = g.servers({counts});
    g.workers(samples, [] { return std::make_unique<counting_trainer>(); }).into(servers);
    g.judge([=] { return std::make_unique<counting_judge>(steps); }).of(servers);
    return g;
  });
}
