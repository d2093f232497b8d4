#include "examples/07_lda/topics.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace lda {

namespace {

/// The probability of each word in each topic, and the topics of a document under it.
class topic_model {
public:
  topic_model(std::span<const float> table, const topic_options& how)
      : how_(how), words_(table.size()), mix_(how.topics), share_(how.topics), sum_(how.topics) {
    constexpr double least = 1e-10; // A word without weight is possible.
    std::vector<double> totals(how_.topics);
    for (std::size_t i = 0; i < table.size(); ++i)
      totals[i % how_.topics] += std::abs(table[i]) + least;
    for (std::size_t i = 0; i < table.size(); ++i)
      words_[i] = static_cast<float>((std::abs(table[i]) + least) / totals[i % how_.topics]);
  }

  /// Finds the share of each topic in a document by EM, from the words for which `counts` is true.
  template <class Counts>
  void fit(const document& words, int rounds, Counts counts) {
    std::ranges::fill(mix_, 1.0f / static_cast<float>(how_.topics));
    for (int round = 0; round < rounds; ++round) {
      std::ranges::fill(sum_, how_.alpha);
      float total = how_.alpha * static_cast<float>(how_.topics);
      for (const auto& x : words)
        if (counts(x.word)) {
          const float scale = x.count / split(x.word);
          for (std::size_t k = 0; k < sum_.size(); ++k)
            sum_[k] += scale * share_[k];
          total += x.count;
        }
      for (std::size_t k = 0; k < mix_.size(); ++k)
        mix_[k] = sum_[k] / total;
    }
  }

  /// Returns the probability of a word in the fitted document; shares() has the part of each topic.
  float split(std::uint32_t word) {
    const float* const of_word = words_.data() + std::size_t{word} * how_.topics;
    float probability = 0;
    for (std::size_t k = 0; k < share_.size(); ++k) {
      share_[k] = mix_[k] * of_word[k];
      probability += share_[k];
    }
    return probability;
  }
  std::span<const float> shares() const { return share_; }
  /// Returns the probability of all words of odd number together.
  double odd_words() const {
    double all = 0;
    for (std::size_t i = how_.topics; i < words_.size(); i += 2 * std::size_t{how_.topics})
      for (std::size_t k = 0; k < how_.topics; ++k)
        all += double{mix_[k]} * words_[i + k];
    return all;
  }

private:
  topic_options how_;
  std::vector<float> words_; ///< [word][topic]
  std::vector<float> mix_, share_, sum_;
};

class lda_trainer final : public troupe::trainer {
public:
  lda_trainer(std::shared_ptr<const corpus> all, const topic_options& how)
      : all_(std::move(all)), how_(how) {}

  double gradient(const troupe::batch& work, troupe::const_tensors parameters,
                  troupe::mutable_tensors gradients) override {
    topic_model model{parameters[0], how_};
    const auto target = gradients[0];
    std::ranges::fill(target, how_.eta);
    const float scale =
      static_cast<float>(all_->train.size()) / static_cast<float>(work.samples.size());
    double loss = 0, words = 0;
    for (const auto sample : work.samples) {
      const auto& read = all_->train[sample];
      model.fit(read, 20, [](std::uint32_t) { return true; });
      for (const auto& x : read) {
        const float probability = model.split(x.word);
        float* const into = target.data() + std::size_t{x.word} * how_.topics;
        for (std::size_t k = 0; k < how_.topics; ++k)
          into[k] += scale * x.count * model.shares()[k] / probability;
        loss -= double{x.count} * std::log(double{probability});
        words += double{x.count};
      }
    }
    return loss / words;
  }

private:
  std::shared_ptr<const corpus> all_;
  topic_options how_;
};

class lda_evaluator final : public troupe::evaluator {
public:
  lda_evaluator(std::shared_ptr<const corpus> all, const topic_options& how)
      : all_(std::move(all)), how_(how) {}

  troupe::evaluation evaluate(troupe::const_tensors parameters) override {
    topic_model model{parameters[0], how_};
    double loss = 0, words = 0;
    for (const auto& read : all_->test) {
      model.fit(read, 50, [](std::uint32_t word) { return word % 2 == 0; });
      const double odd = model.odd_words();
      for (const auto& x : read)
        if (x.word % 2 == 1) {
          loss -= double{x.count} * std::log(model.split(x.word) / odd);
          words += double{x.count};
        }
    }
    troupe::evaluation found;
    found.loss = loss / words;
    found.measures = {{"perplexity", std::exp(found.loss)}};
    return found;
  }

private:
  std::shared_ptr<const corpus> all_;
  topic_options how_;
};

} // namespace

troupe::table_spec topics_table(const corpus& all, const topic_options& how) {
  return {.name = "topics",
          .shape = {all.words, how.topics},
          .init = {troupe::initializer_kind::uniform, 0.5f}};
}

std::unique_ptr<troupe::trainer> make_trainer(std::shared_ptr<const corpus> all,
                                              const topic_options& how) {
  return std::make_unique<lda_trainer>(std::move(all), how);
}

std::unique_ptr<troupe::evaluator> make_evaluator(std::shared_ptr<const corpus> all,
                                                  const topic_options& how) {
  return std::make_unique<lda_evaluator>(std::move(all), how);
}

} // namespace lda
