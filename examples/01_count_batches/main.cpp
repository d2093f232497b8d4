// The smallest program: a table that proves that each batch was applied exactly once.
//
//   element i = sum over all batches b of 1 + bit(b, i mod 64)
//
// bit(b, k) being bit k of a random word of batch b. Where batches were lost, doubled or exchanged,
// a sum is right by chance at best, and those of 64 neighbours together with probability 2^-64.
// bsp subtracts the mean of the n gradients of a clock, so there each is multiplied by n first.
// All numbers are integers up to 2^24: exact in float32, in any order.
#include "actors/graph/program.hpp"

#include "CLI/CLI.hpp"
#include "fmt/core.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>

namespace {

constexpr std::size_t bits = 64;

/// Its own for each batch, the same on every machine.
std::uint64_t random_word(std::uint64_t batch) { return std::mt19937_64{batch}(); }

/// What the batch of this word adds to an element.
float term(std::uint64_t word, std::size_t element) {
  return 1.0f + static_cast<float>(word >> element % bits & 1);
}

std::uint64_t divided_up(std::uint64_t number, std::uint64_t by) { return (number + by - 1) / by; }

/// How many batches there are, and how many of them make one step.
struct schedule {
  std::uint64_t passes = 1;
  std::uint64_t batches = 1; ///< Of a pass.
  std::uint64_t slots = 1;   ///< Batches of a step. bsp: the workers, but fewer at a pass's end.

  std::uint64_t slots_beside(std::uint64_t index) const {
    return std::min(slots, batches - index / slots * slots);
  }
};

void check_exact(const schedule& all) {
  const std::uint64_t rest = all.batches % all.slots;
  if (!std::has_single_bit(all.slots) || (rest > 0 && !std::has_single_bit(rest)))
    throw std::runtime_error{
      "a mean is exact only of 1, 2, 4, 8, ... batches, but " + std::to_string(all.batches)
      + " in a pass are shared by " + std::to_string(all.slots)
      + " workers: use --workers 4 and as many --samples as fill all clocks"};
  if (2 * all.passes * all.batches > 1u << 24)
    throw std::runtime_error{"floats count up to 2^24, so only 2^23 batches are exact, not "
                             + std::to_string(all.passes * all.batches)
                             + ": use fewer --samples or --epochs, or a larger --batch"};
}

class counting_trainer final : public troupe::trainer {
public:
  explicit counting_trainer(const schedule& all) : all_(all) {}

  /// sgd at rate 1 subtracts the gradient.
  double gradient(const troupe::batch& work, troupe::const_tensors,
                  troupe::mutable_tensors gradients) override {
    const std::uint64_t word = random_word(work.id.value);
    const auto scale = -static_cast<float>(all_.slots_beside(work.index));
    for (std::size_t i = 0; i < gradients[0].size(); ++i)
      gradients[0][i] = scale * term(word, i);
    return 0.0;
  }

private:
  schedule all_;
};

/// Loss: how many elements are wrong. Accuracy: 1 when none is, else 0.
class counting_judge final : public troupe::evaluator {
public:
  explicit counting_judge(const schedule& all) {
    for (std::uint64_t batch = 0; batch < all.passes * all.batches; ++batch) {
      const std::uint64_t word = random_word(batch);
      for (std::size_t i = 0; i < bits; ++i)
        expected_[i] += term(word, i);
    }
  }

  troupe::evaluation evaluate(troupe::const_tensors parameters) override {
    const auto found = parameters[0];
    std::size_t right = 0;
    for (std::size_t i = 0; i < found.size(); ++i)
      right += found[i] == expected_[i % bits];
    const auto [least, most] = std::ranges::minmax(found);
    const auto [least_expected, most_expected] = std::ranges::minmax(expected_);
    return {static_cast<double>(found.size() - right),
            right == found.size() ? 1.0 : 0.0,
            {},
            fmt::format("elements: {} to {}, expected in the end: {} to {}, right: {} of {}", least,
                        most, least_expected, most_expected, right, found.size())};
  }

private:
  std::array<float, bits> expected_{};
};

} // namespace

int main(int argc, char** argv) {
  std::uint64_t elements = 100'000;
  std::uint64_t samples = 10'000;
  troupe::program program{"count_batches", "Counts batches on a cluster that outlives kills."};
  program.command_line()
    .add_option("--elements", elements, "Elements of the table")
    ->check(CLI::Range(std::uint64_t{bits}, std::uint64_t{100'000'000}))
    ->capture_default_str();
  program.command_line()
    .add_option("--samples", samples, "Samples of a pass; --batch of them make a batch")
    ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1'000'000'000}))
    ->capture_default_str();

  return program.run(argc, argv, [&](const troupe::run_options& options) {
    const bool bsp = options.sync.mode == troupe::consistency_mode::bsp;
    const schedule all{options.passes, divided_up(samples, options.batch_samples),
                       bsp ? options.workers : 1u};
    check_exact(all);
    troupe::table_spec counts{"counts", {elements}, options.sync, {}, {}};
    counts.optimizer.learning_rate = 1.0f;
    troupe::graph g;
    auto servers = g.servers({counts});
    g.workers(samples, [=] { return std::make_unique<counting_trainer>(all); }).into(servers);
    g.judge([=] { return std::make_unique<counting_judge>(all); }).of(servers);
    return g;
  });
}
