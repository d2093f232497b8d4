#include "examples/02_async_sgd/model.hpp"

#include "examples/02_async_sgd/network.hpp"
#include "examples/02_async_sgd/roc.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

using troupe::const_tensors;
using troupe::errc;
using troupe::initializer;
using troupe::initializer_kind;
using troupe::mutable_tensors;
using troupe::result;
using troupe::table_spec;

namespace async_sgd {

namespace {

/// Returns an initializer that keeps the variance of activations and gradients: He et al. 2015 in
/// front of a ReLU, Glorot and Bengio 2010 in front of the softmax. A single layer is convex and
/// starts at zero.
initializer weight_initializer(const model& shape, std::size_t layer) {
  if (shape.layers() == 1)
    return {};
  const auto in = static_cast<float>(shape.widths[layer]);
  const auto out = static_cast<float>(shape.widths[layer + 1]);
  const bool last = layer + 1 == shape.layers();
  return {initializer_kind::uniform, std::sqrt(6.0f / (last ? in + out : in))};
}

class network_trainer final : public troupe::trainer {
public:
  network_trainer(const model& shape, std::shared_ptr<const dataset> data)
      : sparse_(shape.sparse), data_(std::move(data)), network_(shape.widths, data_->train) {}

  void keys(const troupe::batch& work, troupe::key_lists touched) override {
    if (sparse_)
      add_features(std::get<sparse_rows>(data_->train.rows), work.samples, touched[0]);
  }

  double gradient(const troupe::batch& work, const_tensors parameters,
                  mutable_tensors gradients) override {
    if (sparse_)
      network_.use_rows(work.keys[0]);
    network_.forward(work.samples, parameters);
    return network_.backward(work.samples, parameters, gradients,
                             [&](std::size_t table) { work.ready(table); });
  }

private:
  bool sparse_;
  std::shared_ptr<const dataset> data_;
  network network_;
};

class network_evaluator final : public troupe::evaluator {
public:
  network_evaluator(const model& shape, std::shared_ptr<const dataset> data)
      : data_(std::move(data)), network_(shape.widths, data_->test) {
    all_.resize(data_->test.labels.size());
    std::iota(all_.begin(), all_.end(), 0u);
    if (!shape.sparse)
      return;
    add_features(std::get<sparse_rows>(data_->test.rows), all_, features_);
    std::ranges::sort(features_);
    features_.erase(std::unique(features_.begin(), features_.end()), features_.end());
    network_.use_rows(features_);
  }

  void keys(troupe::key_lists touched) override { touched[0] = features_; }

  troupe::evaluation evaluate(const_tensors parameters) override {
    // Large enough for a fast product, small enough for a cache.
    constexpr std::size_t rows_max = 256;
    const std::size_t classes = data_->classes, count = all_.size();
    const std::span<const std::uint32_t> labels = data_->test.labels;
    scores_.clear();
    double loss = 0.0;
    std::size_t right = 0;
    for (std::size_t first = 0; first < count; first += rows_max) {
      const auto which = std::span(all_).subspan(first, std::min(rows_max, count - first));
      const auto logits = network_.forward(which, parameters);
      for (std::size_t i = 0; i < which.size(); ++i) {
        const auto row = logits.subspan(i * classes, classes);
        const std::uint32_t label = labels[first + i];
        loss += cross_entropy(row, label);
        const auto best = std::ranges::max_element(row) - row.begin();
        right += static_cast<std::uint32_t>(best) == label;
        if (classes == 2)
          scores_.push_back(row[1] - row[0]);
      }
    }
    troupe::evaluation result{.loss = loss / static_cast<double>(count),
                              .accuracy = static_cast<double>(right) / static_cast<double>(count)};
    if (classes == 2)
      result.auc = area_under_roc(scores_, labels);
    return result;
  }

private:
  std::shared_ptr<const dataset> data_;
  network network_;
  std::vector<std::uint32_t> all_;
  std::vector<std::uint64_t> features_; ///< If w1 is sparse: features that occur, in order.
  std::vector<float> scores_;
};

} // namespace

std::vector<table_spec> model::tables() const {
  std::vector<table_spec> result;
  for (std::size_t layer = 0; layer < layers(); ++layer) {
    const std::string number = std::to_string(layer + 1);
    result.push_back({.name = "w" + number,
                      .shape = {widths[layer], widths[layer + 1]},
                      .init = weight_initializer(*this, layer)});
    if (layer == 0 && sparse) {
      result.back().shape.clear();
      result.back().kind = troupe::table_kind::sparse;
      result.back().width = widths[1];
    }
    result.push_back({.name = "b" + number, .shape = {widths[layer + 1]}});
  }
  return result;
}

result<model> parse_model(const std::string& text, const dataset& data, bool sparse) {
  constexpr std::uint32_t width_max = 65'536;
  constexpr std::size_t hidden_max = 16;
  const result<model> refused{
    errc::invalid_argument, "unknown model '" + text
                              + "'; known: softmax, mlp:256 or mlp:256,128,... with 1 to 16 widths "
                                "between 1 and 65536"};
  if (sparse && !std::holds_alternative<sparse_rows>(data.train.rows))
    return {errc::invalid_argument,
            "--sparse needs sparse data, libsvm:TRAIN,TEST, not '" + data.name + "'"};
  model shape{text, {data.features}, sparse};
  if (text != "softmax") {
    if (!text.starts_with("mlp:"))
      return refused;
    const char* const end = text.data() + text.size();
    for (const char* at = text.data() + 4;; ++at) {
      std::uint32_t width = 0;
      const auto [stop, error] = std::from_chars(at, end, width);
      if (error != std::errc{} || width == 0 || width > width_max
          || shape.widths.size() > hidden_max)
        return refused;
      shape.widths.push_back(width);
      at = stop;
      if (at == end)
        break;
      if (*at != ',')
        return refused;
    }
  }
  shape.widths.push_back(data.classes);
  return shape;
}

std::unique_ptr<troupe::trainer> make_trainer(const model& shape,
                                              std::shared_ptr<const dataset> data) {
  return std::make_unique<network_trainer>(shape, std::move(data));
}

std::unique_ptr<troupe::evaluator> make_evaluator(const model& shape,
                                                  std::shared_ptr<const dataset> data) {
  return std::make_unique<network_evaluator>(shape, std::move(data));
}

} // namespace async_sgd
