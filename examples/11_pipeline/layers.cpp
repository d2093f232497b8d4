#include "examples/11_pipeline/layers.hpp"

#include "examples/02_async_sgd/network.hpp"

#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace pipeline {

namespace {

/// c = op(a) op(b) + keep * c, where op(a) is m x k and op(b) is k x n, row by row.
void multiply(CBLAS_TRANSPOSE a_form, CBLAS_TRANSPOSE b_form, std::size_t m, std::size_t n,
              std::size_t k, const float* a, const float* b, float keep, float* c) {
  const auto rows = static_cast<blasint>(m), columns = static_cast<blasint>(n);
  const auto inner = static_cast<blasint>(k);
  cblas_sgemm(CblasRowMajor, a_form, b_form, rows, columns, inner, 1.0f, a,
              a_form == CblasNoTrans ? inner : rows, b, b_form == CblasNoTrans ? columns : inner,
              keep, c, columns);
}

} // namespace

layers::layers(std::vector<std::uint32_t> widths, std::size_t first, std::size_t last,
               std::shared_ptr<const async_sgd::dataset> data)
    : widths_(std::move(widths)), first_(first), last_(last), data_(std::move(data)) {
  openblas_set_num_threads(1); // Other parts compute on the other cores.
}

/// Computes the outputs of all layers of this part.
layers::outputs layers::compute(const troupe::micro_batch& micro, troupe::const_tensors values,
                                std::span<const float> in) {
  const auto rows = micro.samples.size();
  outputs all(last_ - first_ + 1);
  all[0].resize(rows * widths_[first_]);
  if (first_ == 0)
    async_sgd::gather(data_->train, data_->features, micro.samples, all[0]);
  else
    std::ranges::copy(in, all[0].begin());
  for (std::size_t i = 0; i < last_ - first_; ++i) {
    const std::size_t from = widths_[first_ + i], to = widths_[first_ + i + 1];
    auto& out = all[i + 1];
    out.resize(rows * to);
    for (std::size_t row = 0; row < rows; ++row)
      std::ranges::copy(values[2 * i + 1], out.begin() + static_cast<std::ptrdiff_t>(row * to));
    multiply(CblasNoTrans, CblasNoTrans, rows, to, from, all[i].data(), values[2 * i].data(), 1.0f,
             out.data());
    if (first_ + i + 2 < widths_.size()) // All layers of the model but the last have a ReLU.
      std::ranges::for_each(out, [](float& x) { x = std::max(x, 0.0f); });
  }
  return all;
}

void layers::forward(const troupe::micro_batch& micro, troupe::const_tensors values,
                     std::span<const float> in, troupe::part_output& out) {
  if (has_loss())
    return; // backward() follows, and computes all.
  auto all = compute(micro, values, in);
  std::ranges::copy(all.back(), out.of_width(widths_[last_]).begin());
  kept_[micro.number] = std::move(all);
}

/// Turns logits into d(mean loss)/d(logits). Returns the mean loss.
double layers::delta_of_loss(const troupe::micro_batch& micro, std::vector<float>& all_logits) {
  const std::size_t classes = widths_.back(), rows = micro.samples.size();
  double loss = 0.0;
  for (std::size_t row = 0; row < rows; ++row) {
    const std::span logits{all_logits.data() + row * classes, classes};
    const auto label = data_->train.labels[micro.samples[row]];
    const auto own = async_sgd::cross_entropy(logits, label);
    loss += own;
    const auto log_sum = static_cast<float>(own) + logits[label];
    for (float& x : logits)
      x = std::exp(x - log_sum) / static_cast<float>(rows);
    logits[label] -= 1.0f / static_cast<float>(rows);
  }
  return loss / static_cast<double>(rows);
}

double layers::backward(const troupe::micro_batch& micro, troupe::const_tensors values,
                        std::span<const float> in, std::span<const float> out_gradient,
                        troupe::mutable_tensors gradients, std::span<float> in_gradient) {
  auto all = has_loss() ? compute(micro, values, in) : std::move(kept_[micro.number]);
  const auto rows = micro.samples.size();
  double loss = 0.0;
  std::vector<float> delta;
  if (has_loss()) {
    loss = delta_of_loss(micro, all.back());
    delta = all.back();
  } else {
    delta.assign(out_gradient.begin(), out_gradient.end());
    for (std::size_t i = 0; i < delta.size(); ++i)
      delta[i] = all.back()[i] > 0.0f ? delta[i] : 0.0f;
  }
  for (std::size_t i = last_ - first_; i-- > 0;) {
    const std::size_t from = widths_[first_ + i], to = widths_[first_ + i + 1];
    multiply(CblasTrans, CblasNoTrans, from, to, rows, all[i].data(), delta.data(), 0.0f,
             gradients[2 * i].data());
    const auto bias = gradients[2 * i + 1];
    std::ranges::fill(bias, 0.0f);
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t k = 0; k < to; ++k)
        bias[k] += delta[row * to + k];
    if (i == 0 && first_ == 0)
      break; // Nothing asks for the gradient of the data.
    std::vector<float> next(rows * from);
    multiply(CblasNoTrans, CblasTrans, rows, from, to, delta.data(), values[2 * i].data(), 0.0f,
             next.data());
    delta = std::move(next);
    if (i == 0)
      std::ranges::copy(delta, in_gradient.begin());
    else
      for (std::size_t k = 0; k < delta.size(); ++k)
        delta[k] = all[i][k] > 0.0f ? delta[k] : 0.0f;
  }
  return loss;
}

} // namespace pipeline
