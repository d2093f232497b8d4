// Computes fully connected layers with ReLU between them and softmax cross-entropy behind the last.
//
//   h(0) = rows of the batch;  z(k) = h(k-1) W(k) + b(k);  h(k) = max(z(k), 0)
//   d(last) = (softmax(z(last)) - onehot(label)) / rows
//   dW(k) = h(k-1)' d(k);  db(k) = sum of the rows of d(k)
//   d(k-1) = d(k) W(k)' where h(k-1) > 0, else 0
//
// Sparse rows are never made dense: the first layer adds up rows of W(1), and its gradient is
// scattered.
#pragma once

#include "actors/training/trainer.hpp"
#include "examples/02_async_sgd/data/dataset.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace async_sgd {

/// Returns -log softmax(logits)[label].
double cross_entropy(std::span<const float> logits, std::uint32_t label);

/// A network on the CPU. Thread safety: none. Cost: allocates only when a batch is larger than all
/// before.
class network {
public:
  /// Borrowed: `data` outlives this. Sets OpenBLAS, of the whole process, to one thread.
  network(std::vector<std::uint32_t> widths, const samples& data);

  /// Reduces w1 and its gradient to the rows of these features, which ascend:
  /// f32[features.size(), width]. Other features must not occur. Requires: sparse rows.
  void use_rows(std::span<const std::uint64_t> features);

  /// Returns the logits f32[which.size(), classes], valid until the next call.
  /// Shapes: parameters w1 f32[features, width], b1 f32[width], w2, ...
  std::span<const float> forward(std::span<const std::uint32_t> which,
                                 troupe::const_tensors parameters);

  /// Writes every element of `gradients`, which has none for frozen tables, and calls `ready` for
  /// each table when it is complete.
  /// Returns the mean loss. Requires: forward() was called last, with the same arguments.
  double backward(std::span<const std::uint32_t> which, troupe::const_tensors parameters,
                  troupe::mutable_tensors gradients, const troupe::table_listener& ready);

  // These compute the first layer alone, if another network computes the layers above it.

  /// Returns its outputs f32[which.size(), widths[1]], behind the ReLU; valid until the next call.
  /// Requires: there is a layer above it. Shapes: as for forward(); only w1 and b1 are read.
  std::span<const float> forward_first(std::span<const std::uint32_t> which,
                                       troupe::const_tensors parameters);
  /// Writes every element of the gradients of w1 and b1. `delta`: d(loss)/d(z(1)), in the shape of
  /// the outputs. Requires: forward_first() was called last.
  void backward_first(std::span<const std::uint32_t> which, std::span<const float> delta,
                      troupe::mutable_tensors gradients);

private:
  void reserve(std::size_t rows);
  void forward_layer(std::size_t layer, std::span<const std::uint32_t> which,
                     troupe::const_tensors parameters);
  void gradient_of_layer(std::size_t layer, std::span<const std::uint32_t> which,
                         std::span<const float> delta, troupe::mutable_tensors gradients) const;
  const float* input_of(std::size_t layer) const {
    return layer == 0 ? input_.data() : outputs_[layer - 1].data();
  }
  const sparse_rows* sparse() const { return std::get_if<sparse_rows>(&data_.rows); }
  void first_layer_sparse(const sparse_rows& rows, std::span<const std::uint32_t> which,
                          std::span<const float> weights);
  void first_gradient_sparse(const sparse_rows& rows, std::span<const std::uint32_t> which,
                             std::span<const float> delta, std::span<float> gradient) const;
  double delta_of_loss(std::span<const std::uint32_t> which);

  std::size_t row_of(std::uint32_t feature) const {
    return row_of_.empty() ? feature : row_of_[feature];
  }
  std::size_t layers() const { return widths_.size() - 1; }

  std::vector<std::uint32_t> widths_;
  const samples& data_;
  std::vector<float> input_;                ///< Rows of the batch; empty for sparse rows.
  std::vector<std::vector<float>> outputs_; ///< One for each layer; the last becomes its delta.
  std::vector<std::vector<float>> deltas_;  ///< One for each hidden layer.
  std::vector<std::uint32_t> row_of_;       ///< By feature, after use_rows(); else empty.
};

} // namespace async_sgd
