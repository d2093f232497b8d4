// Defines a classifier: softmax over the outputs of a network of fully connected layers, trained on
// cross-entropy.
#pragma once

#include "actors/training/trainer.hpp"
#include "base/error.hpp"
#include "examples/02_async_sgd/data/dataset.hpp"
#include "serialization/job.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace async_sgd {

struct model {
  std::string name;                  ///< As given to parse_model().
  std::vector<std::uint32_t> widths; ///< Features, hidden layers, classes.
  bool sparse = false;               ///< w1 is a sparse table: a row for each feature that occurs.

  std::size_t layers() const { return widths.size() - 1; }
  /// Returns the tables: w1 f32[features, width], b1 f32[width], w2, b2, ... A sparse w1 has rows
  /// f32[width] with feature numbers, from 0, as keys.
  std::vector<troupe::table_spec> tables() const;
};

/// Parses "softmax" or "mlp:256,128" (widths of its ReLU layers) for the features and classes of
/// `data`. `sparse`: w1 is a sparse table, for sparse samples. Errors: invalid_argument.
troupe::result<model> parse_model(const std::string& text, const dataset& data,
                                  bool sparse = false);

/// Returns a trainer that computes gradients on the training samples. It sets OpenBLAS, of the
/// whole process, to one thread. Cost: allocates only when a batch is larger than all before.
std::unique_ptr<troupe::trainer> make_trainer(const model& shape,
                                              std::shared_ptr<const dataset> data);
/// Returns an evaluator of loss and accuracy on the test samples, and of the area under the ROC
/// curve for two classes.
std::unique_ptr<troupe::evaluator> make_evaluator(const model& shape,
                                                  std::shared_ptr<const dataset> data);

} // namespace async_sgd
