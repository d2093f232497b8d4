#include "examples/09_libtorch/model.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <cblas.h>
#include <torch/nn.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace convolution {

namespace {

constexpr std::int64_t side = 28;

struct network : torch::nn::Module {
  explicit network(std::int64_t classes)
      : convolution1(register_module("convolution1", torch::nn::Conv2d(1, 8, 5))),
        convolution2(register_module("convolution2", torch::nn::Conv2d(8, 16, 3))),
        full1(register_module("full1", torch::nn::Linear(16 * 5 * 5, 64))),
        full2(register_module("full2", torch::nn::Linear(64, classes))) {}

  /// Returns f32[images, classes]. `kept` multiplies the hidden layer, if it is defined.
  torch::Tensor forward(torch::Tensor x, const torch::Tensor& kept = {}) {
    x = torch::max_pool2d(torch::relu(convolution1(x)), 2);
    x = torch::max_pool2d(torch::relu(convolution2(x)), 2);
    x = torch::relu(full1(x.flatten(1)));
    return full2(kept.defined() ? x * kept : x);
  }

  torch::nn::Conv2d convolution1, convolution2;
  torch::nn::Linear full1, full2;
};

/// Runs the module on values and images of Troupe, on one thread.
class runner {
public:
  explicit runner(const async_sgd::dataset& from) : net(from.classes), features_(from.features) {
    at::set_num_threads(1);      // Of this thread.
    openblas_set_num_threads(1); // Of the process: libtorch's matrix products.
    parameters = net.parameters();
  }

  /// Lets the module compute on `values`, until the next call. libtorch has no tensors of const
  /// values, but nothing writes to these.
  void use(troupe::const_tensors values) {
    for (std::size_t i = 0; i < parameters.size(); ++i)
      parameters[i].set_data(
        torch::from_blob(const_cast<float*>(values[i].data()), parameters[i].sizes()));
  }

  /// Copies a batch of images and labels to tensors.
  void load(const async_sgd::samples& from, std::span<const std::uint32_t> which) {
    const auto count = static_cast<std::int64_t>(which.size());
    images = torch::empty({count, 1, side, side});
    labels = torch::empty({count}, torch::kLong);
    async_sgd::gather(from, features_, which, {images.data_ptr<float>(), which.size() * features_});
    std::ranges::transform(which, labels.data_ptr<std::int64_t>(),
                           [&](std::uint32_t sample) { return from.labels[sample]; });
  }

  network net;
  std::vector<torch::Tensor> parameters; ///< In the order of the tables.
  torch::Tensor images, labels;

private:
  std::uint32_t features_;
};

class module_trainer final : public troupe::trainer {
public:
  module_trainer(shared_images images, double dropout)
      : all_(std::move(images)), dropout_(dropout), run_(*all_) {}

  double gradient(const troupe::batch& work, troupe::const_tensors values,
                  troupe::mutable_tensors gradients) override {
    run_.use(values);
    // backward() adds to a gradient that is there, in its place.
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      std::ranges::fill(gradients[i], 0.0f);
      run_.parameters[i].mutable_grad() =
        torch::from_blob(gradients[i].data(), run_.parameters[i].sizes());
    }
    run_.load(all_->train, work.samples);
    auto loss = torch::cross_entropy_loss(run_.net.forward(run_.images, kept(work)), run_.labels);
    loss.backward();
    for (std::size_t i = 0; i < gradients.size(); ++i)
      if (run_.parameters[i].grad().data_ptr<float>() != gradients[i].data())
        throw std::logic_error{"this libtorch has put a gradient into a tensor of its own"};
    return loss.item<double>();
  }

private:
  /// Draws what dropout keeps of the hidden layer. torch::manual_seed() would seed the process, in
  /// which other workers draw; this generator is the worker's own.
  torch::Tensor kept(const troupe::batch& work) const {
    if (dropout_ == 0)
      return {};
    const auto hidden = run_.net.full1->options.out_features();
    return torch::empty({run_.images.size(0), hidden})
      .bernoulli_(1 - dropout_, at::make_generator<at::CPUGeneratorImpl>(work.seed))
      .div_(1 - dropout_);
  }

  shared_images all_;
  double dropout_;
  runner run_;
};

class module_evaluator final : public troupe::evaluator {
public:
  explicit module_evaluator(shared_images images)
      : all_(std::move(images)), run_(*all_), numbers_(all_->test.labels.size()) {
    std::iota(numbers_.begin(), numbers_.end(), 0u);
  }

  troupe::evaluation evaluate(troupe::const_tensors values) override {
    constexpr std::size_t rows_max = 256; // Their activations fit a cache.
    const torch::NoGradGuard no_gradients;
    run_.use(values);
    double loss = 0, right = 0;
    for (std::size_t first = 0; first < numbers_.size(); first += rows_max) {
      const auto count = std::min(rows_max, numbers_.size() - first);
      run_.load(all_->test, std::span(numbers_).subspan(first, count));
      const auto scores = run_.net.forward(run_.images);
      loss += torch::cross_entropy_loss(scores, run_.labels, {}, at::Reduction::Sum).item<double>();
      right += scores.argmax(1).eq(run_.labels).sum().item<double>();
    }
    const auto count = static_cast<double>(numbers_.size());
    return {.loss = loss / count, .accuracy = right / count};
  }

private:
  shared_images all_;
  runner run_;
  std::vector<std::uint32_t> numbers_;
};

/// Returns He's initialisation (He et al. 2015) for weights, and zeros for a bias.
troupe::initializer first_values(const torch::Tensor& parameter) {
  if (parameter.dim() == 1)
    return {};
  const auto inputs = static_cast<float>(parameter.numel() / parameter.size(0));
  return {troupe::initializer_kind::uniform, std::sqrt(6.0f / inputs)};
}

} // namespace

troupe::result<std::vector<troupe::table_spec>> tables(const async_sgd::dataset& images) {
  if (images.features != side * side
      || std::holds_alternative<async_sgd::sparse_rows>(images.train.rows))
    return {troupe::errc::invalid_argument,
            "--data needs images of 28 x 28, digits or mnist:DIR, not '" + images.name + "'"};
  std::vector<troupe::table_spec> made;
  for (const auto& named : network(images.classes).named_parameters()) {
    const auto shape = named.value().sizes();
    made.push_back({.name = named.key(),
                    .shape = {shape.begin(), shape.end()},
                    .init = first_values(named.value())});
  }
  return made;
}

std::unique_ptr<troupe::trainer> make_trainer(shared_images images, double dropout) {
  return std::make_unique<module_trainer>(std::move(images), dropout);
}

std::unique_ptr<troupe::evaluator> make_evaluator(shared_images images) {
  return std::make_unique<module_evaluator>(std::move(images));
}

} // namespace convolution
