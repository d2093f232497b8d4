// The smallest program: a table that proves that each batch was applied exactly once.
//
//   element i = sum over all batches b of 1 + bit(b, i mod 64)
//
// bit(b, k) being bit k of a random word of batch b. Where batches were lost, doubled or exchanged,
// a sum is right by chance at best, and those of 64 neighbours together with probability 2^-64.
// bsp subtracts the mean of the n gradients of a clock, so there each is multiplied by n first.
// All numbers are integers up to 2^24: exact in float32, in any order.
//
// With --sparse the elements lie in rows of 16, and a batch touches about half of the rows: row r
// where bit r mod 64 of another random word of the batch is set.
#include "examples/03_count_batches/functions.hpp"
#include "examples/03_count_batches/stages.hpp"
#include "troupe/troupe.hpp"

#include "fmt/core.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr std::size_t bits = 64;

/// Its own for each batch, the same on every machine.
std::uint64_t random_word(std::uint64_t batch) { return std::mt19937_64{batch}(); }

/// What the batch of this word adds to an element.
float term(std::uint64_t word, std::size_t element) {
  return 1.0f + static_cast<float>(word >> element % bits & 1);
}

constexpr std::uint32_t row_width = 16;

/// Keys are far apart, as those of real tables.
std::uint64_t key_of(std::uint64_t row) { return row * 0x9e3779b97f4a7c15; }
std::uint64_t row_of(std::uint64_t key) { return key * 0xf1de83e19937733d; } // Undoes key_of().

/// Bit r mod 64: whether the batch of this word touches row r.
std::uint64_t rows_word(std::uint64_t word) { return random_word(word); }

bool touches(std::uint64_t rows, std::uint64_t row) { return (rows >> row % bits & 1) != 0; }

std::uint64_t divided_up(std::uint64_t number, std::uint64_t by) { return (number + by - 1) / by; }

/// How many batches there are, and how many of them make one step.
struct schedule {
  std::uint64_t epochs = 1;
  std::uint64_t batches = 1; ///< Of a pass.
  std::uint64_t slots = 1;   ///< Batches of a step. bsp: the workers, but fewer at a pass's end.
  std::uint64_t rows = 0;    ///< --sparse: of the table.

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
  if (2 * all.epochs * all.batches > 1u << 24)
    throw std::runtime_error{"floats count up to 2^24, so only 2^23 batches are exact, not "
                             + std::to_string(all.epochs * all.batches)
                             + ": use fewer --samples or --epochs, or a larger --batch"};
}

class counting_trainer final : public troupe::trainer {
public:
  explicit counting_trainer(const schedule& all) : all_(all) {}

  void keys(const troupe::batch& work, troupe::key_lists touched) override {
    const std::uint64_t rows = rows_word(random_word(work.id.value));
    for (std::uint64_t row = 0; row < all_.rows; ++row)
      if (touches(rows, row))
        touched[0].push_back(key_of(row));
  }

  /// sgd at rate 1 subtracts the gradient.
  double gradient(const troupe::batch& work, troupe::const_tensors,
                  troupe::mutable_tensors gradients) override {
    const std::uint64_t word = random_word(work.id.value);
    const auto scale = -static_cast<float>(all_.slots_beside(work.index));
    for (std::size_t i = 0; i < gradients[0].size(); ++i) {
      const std::size_t first =
        all_.rows == 0 ? 0 : row_of(work.keys[0][i / row_width]) * row_width;
      gradients[0][i] = scale * term(word, first + (all_.rows == 0 ? i : i % row_width));
    }
    return 0.0;
  }

private:
  schedule all_;
};

/// Loss: how many elements are wrong. Accuracy: 1 when none is, else 0.
class counting_evaluator final : public troupe::evaluator {
public:
  explicit counting_evaluator(const schedule& all)
      : expected_(all.rows == 0 ? bits : bits * row_width) {
    for (std::uint64_t batch = 0; batch < all.epochs * all.batches; ++batch) {
      const std::uint64_t word = random_word(batch), rows = rows_word(word);
      for (std::size_t i = 0; i < expected_.size(); ++i)
        if (all.rows == 0 || touches(rows, i / row_width))
          expected_[i] += term(word, i);
    }
    for (std::uint64_t row = 0; row < all.rows; ++row)
      keys_.push_back(key_of(row));
    std::ranges::sort(keys_);
  }

  void keys(troupe::key_lists touched) override { touched[0] = keys_; }

  troupe::evaluation evaluate(troupe::const_tensors parameters) override {
    const auto found = parameters[0];
    std::size_t right = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const std::size_t element =
        keys_.empty() ? i : row_of(keys_[i / row_width]) * row_width + i % row_width;
      right += found[i] == expected_[element % expected_.size()];
    }
    const auto [least, most] = std::ranges::minmax(found);
    const auto [least_expected, most_expected] = std::ranges::minmax(expected_);
    return {.loss = static_cast<double>(found.size() - right),
            .accuracy = right == found.size() ? 1.0 : 0.0,
            .note =
              fmt::format("elements: {} to {}, expected in the end: {} to {}, right: {} of {}",
                          least, most, least_expected, most_expected, right, found.size())};
  }

private:
  std::vector<float> expected_;     ///< From here on they repeat.
  std::vector<std::uint64_t> keys_; ///< --sparse: of all rows, in ascending order.
};

} // namespace

int main(int argc, char** argv) {
  std::uint64_t elements = 100'000;
  std::uint64_t samples = 10'000;
  troupe::program program{"count_batches", "Counts batches on a cluster that outlives kills."};
  program.option("--elements", elements, "Elements of the table", bits, 100'000'000);
  program.option("--samples", samples, "Samples of an epoch; --batch of them make a batch", 1,
                 1'000'000'000);
  bool sparse = false;
  program.flag("--sparse", sparse, "Count in rows of a sparse table; a batch touches half of them");
  std::string stage = "none";
  program.option("--stage", stage,
                 "A stage before the sums: none, plain (passes all on), or one with a mistake, "
                 "which ends the job: swallow, double, rename, reorder, throw",
                 count_batches::stage_names());
  std::string function = "none";
  program.option("--function", function,
                 "A server function that adds gradients: none, add, or one with a mistake, which "
                 "ends the job: hidden, host, fail",
                 count_batches::function_names());
  count_batches::add_functions(program);

  return program.run(argc, argv, [&](const troupe::run_options& options) {
    const bool bsp = options.sync.mode == troupe::consistency_mode::bsp;
    const schedule all{options.epochs, divided_up(samples, options.batch_samples),
                       bsp ? options.workers.count : 1u, sparse ? elements / row_width : 0};
    check_exact(all);
    troupe::table_spec counts{.name = "counts", .shape = {elements}};
    if (sparse) {
      counts.shape.clear();
      counts.kind = troupe::table_kind::sparse;
      counts.width = row_width;
    }
    auto store = options.store({counts});
    store.tables().front().optimizer = {.learning_rate = 1.0f}; // Each gradient is added as it is.
    if (function != "none")
      store.tables().front().optimizer = {
        .kind = troupe::optimizer_kind::user, .learning_rate = 1.0f, .function = function};
    troupe::graph g;
    auto sums = g.add("sums", std::move(store));
    auto counters =
      g.add("counters",
            options.workers_of(samples, [=] { return std::make_unique<counting_trainer>(all); }));
    counters.into(count_batches::stages_of(stage), options.stages(), sums);
    g.add("check", troupe::evaluate{[=] { return std::make_unique<counting_evaluator>(all); }})
      .into(sums);
    return g;
  });
}
