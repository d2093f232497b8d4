// A part of a classifier: some of its fully connected layers, with ReLU between all layers and
// softmax cross-entropy behind the last one.
#pragma once

#include "examples/02_async_sgd/data/dataset.hpp"
#include "troupe/troupe.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace pipeline {

class layers final : public troupe::part {
public:
  /// Has the layers `first` .. `last` - 1 of those between `widths`.
  layers(std::vector<std::uint32_t> widths, std::size_t first, std::size_t last,
         std::shared_ptr<const async_sgd::dataset> data);

  void forward(const troupe::micro_batch& micro, troupe::const_tensors values,
               std::span<const float> in, troupe::part_output& out) override;
  double backward(const troupe::micro_batch& micro, troupe::const_tensors values,
                  std::span<const float> in, std::span<const float> out_gradient,
                  troupe::mutable_tensors gradients, std::span<float> in_gradient) override;

private:
  using outputs = std::vector<std::vector<float>>; ///< [0]: the input; then one for each layer.

  bool has_loss() const { return last_ + 1 == widths_.size(); }
  outputs compute(const troupe::micro_batch& micro, troupe::const_tensors values,
                  std::span<const float> in);
  double delta_of_loss(const troupe::micro_batch& micro, std::vector<float>& all_logits);

  std::vector<std::uint32_t> widths_;
  std::size_t first_, last_;
  std::shared_ptr<const async_sgd::dataset> data_;
  std::map<std::uint32_t, outputs> kept_; ///< From forward() to backward(), by micro-batch.
};

} // namespace pipeline
