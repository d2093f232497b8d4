#include "examples/03_count_batches/trainers.hpp"

#include "fmt/core.h"

#include <algorithm>
#include <vector>

namespace count_batches {

namespace {

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
  double gradient(const troupe::batch& work, troupe::const_tensors values,
                  troupe::mutable_tensors gradients) override {
    const std::uint64_t word = random_word(work.id.value);
    const auto scale = -all_.gain * static_cast<float>(all_.slots_beside(work.index));
    for (std::size_t i = 0; i < gradients[0].size(); ++i) {
      const std::size_t first =
        all_.rows == 0 ? 0 : row_of(work.keys[0][i / row_width]) * row_width;
      const std::size_t element = first + (all_.rows == 0 ? i : i % row_width);
      const float factor = values.size() > 1 ? values[1][element] : 1.0f;
      gradients[0][i] = scale * factor * term(word, element);
    }
    if (gradients.size() > 1)
      std::ranges::fill(gradients[1], 0.0f); // It is empty, unless --thaw is given.
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
      const float factor = parameters.size() > 1 ? parameters[1][element] : 1.0f;
      right += found[i] == factor * expected_[element % expected_.size()];
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

std::unique_ptr<troupe::trainer> make_trainer(const schedule& all) {
  return std::make_unique<counting_trainer>(all);
}

std::unique_ptr<troupe::evaluator> make_evaluator(const schedule& all) {
  return std::make_unique<counting_evaluator>(all);
}

} // namespace count_batches
