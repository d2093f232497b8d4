#include "examples/02_async_sgd/model.hpp"

#include "actors/training/sampler.hpp"
#include "examples/02_async_sgd/random.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

namespace async_sgd::model_test {

namespace {

using matrix = std::vector<std::vector<double>>;

/// Returns random samples, dense or in sparse rows with a third of the entries.
std::shared_ptr<dataset> random_data(std::uint32_t features, std::uint32_t classes,
                                     std::uint32_t count, bool sparse) {
  splitmix64 random(features + 100 * classes);
  auto data = std::make_shared<dataset>();
  data->features = features;
  data->classes = classes;
  sparse_rows compressed;
  float_rows dense;
  for (std::uint32_t i = 0; i < count; ++i) {
    data->train.labels.push_back(static_cast<std::uint32_t>(random.next() % classes));
    for (std::uint32_t k = 0; k < features; ++k) {
      const float value = random.symmetric();
      dense.values.push_back(value);
      if (random.next() % 3 == 0) {
        compressed.columns.push_back(k);
        compressed.values.push_back(value);
      }
    }
    compressed.first.push_back(compressed.columns.size());
  }
  data->test.labels = data->train.labels;
  if (sparse) {
    data->test.rows = compressed;
    data->train.rows = std::move(compressed);
  } else {
    data->test.rows = dense;
    data->train.rows = std::move(dense);
  }
  return data;
}

std::vector<double> input_row(const dataset& data, std::uint32_t sample) {
  std::vector<double> row(data.features);
  if (const auto* sparse = std::get_if<sparse_rows>(&data.train.rows)) {
    for (auto k = sparse->first[sample]; k < sparse->first[sample + 1]; ++k)
      row[sparse->columns[k]] += static_cast<double>(sparse->values[k]);
  } else {
    const auto& values = std::get<float_rows>(data.train.rows).values;
    for (std::uint32_t k = 0; k < data.features; ++k)
      row[k] = static_cast<double>(values[sample * data.features + k]);
  }
  return row;
}

/// Returns logits in float64, straight from the formula.
std::vector<double> reference_logits(const model& shape, const std::vector<double>& input,
                                     const matrix& parameters) {
  std::vector<double> in = input;
  for (std::size_t layer = 0; layer < shape.layers(); ++layer) {
    std::vector<double> out = parameters[2 * layer + 1];
    for (std::size_t i = 0; i < in.size(); ++i)
      for (std::size_t j = 0; j < out.size(); ++j)
        out[j] += in[i] * parameters[2 * layer][i * out.size() + j];
    if (layer + 1 < shape.layers())
      for (double& x : out)
        x = std::max(x, 0.0);
    in = std::move(out);
  }
  return in;
}

double reference_loss(const model& shape, const dataset& data,
                      const std::vector<std::uint32_t>& batch, const matrix& parameters) {
  double loss = 0.0;
  for (const std::uint32_t sample : batch) {
    const auto logits = reference_logits(shape, input_row(data, sample), parameters);
    double sum = 0.0;
    for (const double x : logits)
      sum += std::exp(x);
    loss += std::log(sum) - logits[data.train.labels[sample]];
  }
  return loss / static_cast<double>(batch.size());
}

/// Parameters in the form that the trainer takes, and the same values in float64.
struct parameter_set {
  explicit parameter_set(const model& shape) {
    splitmix64 random(3);
    for (const auto& table : shape.tables()) {
      auto& values = floats.emplace_back(table.size());
      gradients.emplace_back(table.size(), 77.0f); // The trainer must overwrite this.
      for (float& x : values)
        x = 0.7f * random.symmetric();
      doubles.emplace_back(values.begin(), values.end());
    }
    for (std::size_t i = 0; i < floats.size(); ++i) {
      views.emplace_back(floats[i]);
      gradient_views.emplace_back(gradients[i]);
    }
  }

  std::vector<std::vector<float>> floats, gradients;
  matrix doubles;
  std::vector<std::span<const float>> views;
  std::vector<std::span<float>> gradient_views;
};

troupe::batch work_on(const std::vector<std::uint32_t>& samples) {
  troupe::batch work;
  work.samples = samples;
  return work;
}

void check_gradient(const std::string& name, std::uint32_t classes, bool sparse) {
  CAPTURE(name);
  CAPTURE(sparse);
  const auto data = random_data(11, classes, 20, sparse);
  const auto shape = parse_model(name, *data);
  REQUIRE(shape);
  parameter_set set(*shape);
  const auto trainer = make_trainer(*shape, data);
  // The first batch is larger: its leftovers must not matter.
  for (const std::vector<std::uint32_t>& batch :
       {std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7}, {13, 2, 19}, {5}, {4, 4, 9, 10, 11}}) {
    const double loss = trainer->gradient(work_on(batch), set.views, set.gradient_views);
    CHECK(loss == doctest::Approx(reference_loss(*shape, *data, batch, set.doubles)).epsilon(1e-5));
    for (std::size_t t = 0; t < set.doubles.size(); ++t)
      for (std::size_t i = 0; i < set.doubles[t].size(); ++i) {
        constexpr double step = 1e-5; // The difference errs by about step^2; no kink is that near.
        const double middle = set.doubles[t][i];
        set.doubles[t][i] = middle + step;
        const double above = reference_loss(*shape, *data, batch, set.doubles);
        set.doubles[t][i] = middle - step;
        const double below = reference_loss(*shape, *data, batch, set.doubles);
        set.doubles[t][i] = middle;
        const double slope = (above - below) / (2.0 * step);
        CAPTURE(t);
        CAPTURE(i);
        CHECK(std::abs(static_cast<double>(set.gradients[t][i]) - slope) < 2e-6);
      }
  }
}

} // namespace

TEST_CASE("parses models and names their tables") {
  dataset data;
  data.features = 784;
  data.classes = 10;
  const auto softmax = parse_model("softmax", data);
  REQUIRE(softmax);
  const auto one = softmax->tables();
  REQUIRE(one.size() == 2);
  CHECK(one[0].name == "w1");
  CHECK(one[0].shape == std::vector<std::uint64_t>{784, 10});
  CHECK(one[0].init == troupe::initializer{});
  CHECK(one[1].name == "b1");
  CHECK(one[1].shape == std::vector<std::uint64_t>{10});

  const auto mlp = parse_model("mlp:256,32", data);
  REQUIRE(mlp);
  CHECK(mlp->widths == std::vector<std::uint32_t>{784, 256, 32, 10});
  const auto six = mlp->tables();
  REQUIRE(six.size() == 6);
  CHECK(six[2].name == "w2");
  CHECK(six[2].shape == std::vector<std::uint64_t>{256, 32});
  CHECK(six[0].init.kind == troupe::initializer_kind::uniform);
  CHECK(six[0].init.scale == doctest::Approx(std::sqrt(6.0 / 784)));
  CHECK(six[4].init.scale == doctest::Approx(std::sqrt(6.0 / 42)));
  CHECK(six[5].init == troupe::initializer{});
}

TEST_CASE("refuses unknown models") {
  dataset data;
  data.features = 4;
  data.classes = 3;
  std::string deep = "mlp:1";
  for (int i = 0; i < 16; ++i)
    deep += ",1";
  for (const std::string text :
       {"", "soft", "softmax:3", "mlp", "mlp:", "mlp:0", "mlp:-3", "mlp:3,", "mlp:,3", "mlp:3;4",
        "mlp:3x", "mlp:65537", "mlp:99999999999", deep.c_str()}) {
    CAPTURE(text);
    const auto shape = parse_model(text, data);
    REQUIRE_FALSE(shape);
    CHECK(shape.error().code == troupe::errc::invalid_argument);
    CHECK(shape.error().text.find("known: softmax, mlp:256") != std::string::npos);
  }
}

TEST_CASE("gradients equal finite differences in float64") {
  for (const bool sparse : {false, true})
    for (const std::uint32_t classes : {2u, 3u, 10u})
      for (const char* name : {"softmax", "mlp:5", "mlp:6,4"})
        check_gradient(name, classes, sparse);
}

TEST_CASE("a gradient is told of layer by layer from the last one, each when it is complete") {
  const auto data = random_data(11, 3, 20, false);
  const auto shape = parse_model("mlp:6,4", *data);
  REQUIRE(shape);
  parameter_set set(*shape);
  const auto trainer = make_trainer(*shape, data);
  std::vector<std::size_t> told;
  std::vector<std::vector<float>> seen(set.gradients.size());
  const std::vector<std::uint32_t> samples{0, 1, 2, 3};
  auto work = work_on(samples);
  work.on_ready = [&](std::size_t table) {
    told.push_back(table);
    seen[table] = set.gradients[table];
    for (const std::size_t below : {1u, 2u}) // The next layer is still untouched.
      if (table >= 2 * below)
        CHECK(set.gradients[2 * below - 2][0] == 77.0f);
  };
  trainer->gradient(work, set.views, set.gradient_views);
  CHECK(told == std::vector<std::size_t>{4, 5, 2, 3, 0, 1});
  CHECK(seen == set.gradients);
}

TEST_CASE("softmax survives large logits") {
  const auto data = random_data(3, 3, 4, false);
  const auto shape = parse_model("softmax", *data);
  REQUIRE(shape);
  parameter_set set(*shape);
  for (float& x : set.floats[0])
    x *= 1e4f;
  const auto trainer = make_trainer(*shape, data);
  const std::vector<std::uint32_t> batch{0, 1, 2, 3};
  CHECK(std::isfinite(trainer->gradient(work_on(batch), set.views, set.gradient_views)));
  for (const auto& gradient : set.gradients)
    for (const float x : gradient)
      CHECK(std::isfinite(x));
}

TEST_CASE("evaluates loss, accuracy and, for two classes, auc") {
  for (const std::uint32_t classes : {2u, 4u}) {
    const auto data = random_data(7, classes, 600, true); // 600 rows are more than one stretch.
    const auto shape = parse_model("mlp:9", *data);
    REQUIRE(shape);
    const parameter_set set(*shape);
    const auto result = make_evaluator(*shape, data)->evaluate(set.views);
    std::vector<std::uint32_t> all(600);
    double right = 0.0, won = 0.0, pairs = 0.0;
    std::vector<double> scores;
    for (std::uint32_t i = 0; i < 600; ++i) {
      all[i] = i;
      const auto logits = reference_logits(*shape, input_row(*data, i), set.doubles);
      right += std::ranges::max_element(logits) - logits.begin() == data->train.labels[i];
      scores.push_back(logits[1] - logits[0]);
    }
    for (std::uint32_t i = 0; i < 600; ++i)
      for (std::uint32_t j = 0; j < 600; ++j)
        if (data->train.labels[i] == 1 && data->train.labels[j] == 0) {
          pairs += 1.0;
          won += scores[i] > scores[j] ? 1.0 : scores[i] == scores[j] ? 0.5 : 0.0;
        }
    CHECK(result.loss == doctest::Approx(reference_loss(*shape, *data, all, set.doubles)));
    CHECK(*result.accuracy == doctest::Approx(right / 600.0));
    CHECK(result.auc.has_value() == (classes == 2));
    if (result.auc)
      CHECK(*result.auc == doctest::Approx(won / pairs).epsilon(1e-4));
  }
}

TEST_CASE("learns the drawn digits") {
  auto loaded = load_dataset("digits");
  REQUIRE(loaded);
  const auto data = std::make_shared<const dataset>(*std::move(loaded));
  const auto shape = parse_model("softmax", *data);
  REQUIRE(shape);
  troupe::job_spec job;
  job.samples = 60'000;
  job.tables = shape->tables();
  parameter_set set(*shape);
  for (auto& values : set.floats)
    std::ranges::fill(values, 0.0f);
  const auto trainer = make_trainer(*shape, data);
  troupe::sampler sampler(job);
  for (std::uint64_t i = 0; i < 150; ++i) {
    trainer->gradient(sampler.at({i}), set.views, set.gradient_views);
    for (std::size_t t = 0; t < set.floats.size(); ++t)
      for (std::size_t k = 0; k < set.floats[t].size(); ++k)
        set.floats[t][k] -= 0.1f * set.gradients[t][k];
  }
  const auto result = make_evaluator(*shape, data)->evaluate(set.views);
  CHECK(*result.accuracy > 0.6);
  CHECK(*result.accuracy < 0.92);
  CHECK_FALSE(result.auc);
}

} // namespace async_sgd::model_test
