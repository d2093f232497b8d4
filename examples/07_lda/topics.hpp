// The topics of a corpus: their table, what a batch says about them, and their quality.
#pragma once

#include "examples/07_lda/corpus.hpp"
#include "troupe/troupe.hpp"

#include <cstdint>
#include <memory>

namespace lda {

struct topic_options {
  std::uint32_t topics = 20;
  float alpha = 0.1f; ///< Pseudo-count of each topic in a document.
  float eta = 0.01f;  ///< Pseudo-count of each word in a topic.
};

/// Returns the table `topics`, f32[words, topics]: the weight of a word in a topic is the magnitude
/// of its number. The numbers are drawn at first.
troupe::table_spec topics_table(const corpus& all, const topic_options& how);

/// A "gradient" is the whole table as the batch alone would have it: the words of its documents,
/// shared out among topics, and scaled up to the size of the corpus. The server function blends it
/// in. Loss: minus the logarithm of a word's probability.
std::unique_ptr<troupe::trainer> make_trainer(std::shared_ptr<const corpus> all,
                                              const topic_options& how);

/// Fits the topics of each test document to its words of even number, then predicts those of odd
/// number. Measure `perplexity`: the number of equally likely words that would be as hard to guess.
std::unique_ptr<troupe::evaluator> make_evaluator(std::shared_ptr<const corpus> all,
                                                  const topic_options& how);

} // namespace lda
