#include "examples/02_async_sgd/device_trainer.hpp"

#include "kernels/devices/emulated_platform.hpp"
#include "examples/02_async_sgd/device_network.hpp"

#include "doctest/doctest.h"

#include <cmath>
#include <string>

using namespace async_sgd;

namespace {

/// Numbers in [-1, 1) that are the same with every standard library.
class numbers {
public:
  float next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<float>(state_ >> 40) * 0x1p-23f - 1.0f;
  }

private:
  std::uint64_t state_ = 1;
};

std::shared_ptr<const dataset> some_data(bool sparse) {
  constexpr std::uint32_t features = 23, rows = 40;
  auto data = std::make_shared<dataset>();
  data->features = features;
  data->classes = 5;
  numbers random;
  float_rows dense;
  sparse_rows few;
  for (std::uint32_t i = 0; i < rows; ++i) {
    data->train.labels.push_back(i * 7 % 5);
    for (std::uint32_t feature = 0; feature < features; ++feature) {
      const float value = random.next();
      dense.values.push_back(value);
      if (value > 0.5f) {
        few.columns.push_back(feature);
        few.values.push_back(value);
      }
    }
    few.first.push_back(few.columns.size());
  }
  if (sparse)
    data->train.rows = few;
  else
    data->train.rows = dense;
  return data;
}

/// Parameters of a model, and the gradients that one trainer computes.
struct one_side {
  explicit one_side(const model& shape) {
    numbers random;
    for (const auto& table : shape.tables({}, {})) {
      parameters.emplace_back(table.size());
      for (float& x : parameters.back())
        x = random.next();
      gradients.emplace_back(table.size(), 77.0f);
    }
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      views.emplace_back(parameters[i]);
      gradient_views.emplace_back(gradients[i]);
    }
  }
  std::vector<std::vector<float>> parameters, gradients;
  std::vector<std::span<const float>> views;
  std::vector<std::span<float>> gradient_views;
};

constexpr troupe::device_place twin{troupe::device_kind::twin, 0};

} // namespace

TEST_CASE("a device's trainer computes the gradients of the CPU's") {
  for (const bool sparse : {false, true})
    for (const char* name : {"softmax", "mlp:8", "mlp:300,7,12"}) {
      CAPTURE(name);
      CAPTURE(sparse);
      const auto data = some_data(sparse);
      const auto shape = parse_model(name, *data);
      REQUIRE(shape);
      const auto cpu = make_trainer(*shape, data), there = make_trainer_at(twin, *shape, data);
      for (const std::vector<std::uint32_t>& batch :
           {std::vector<std::uint32_t>{3, 1, 4}, {5}, {9, 2, 6, 5, 35, 0, 11, 11}, {7, 8}}) {
        one_side a(*shape), b(*shape);
        troupe::batch work;
        work.samples = batch;
        const double wanted = cpu->gradient(work, a.views, a.gradient_views);
        CHECK(there->gradient(work, b.views, b.gradient_views)
              == doctest::Approx(wanted).epsilon(1e-5));
        for (std::size_t t = 0; t < a.gradients.size(); ++t)
          for (std::size_t i = 0; i < a.gradients[t].size(); ++i)
            REQUIRE(std::fabs(a.gradients[t][i] - b.gradients[t][i])
                    <= 2e-5f * (1.0f + std::fabs(a.gradients[t][i])));
      }
    }
}

TEST_CASE("a device's work is ordered whichever of its streams is slow") {
  const auto data = some_data(false);
  const auto shape = parse_model("mlp:16,8", *data);
  REQUIRE(shape);
  const std::vector<std::uint32_t> batch{1, 2, 3, 4, 5};
  one_side first(*shape);
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    auto network = device_network::make(troupe::emulate_devices({.seed = seed}), 0, shape->widths);
    REQUIRE(network);
    one_side here(*shape);
    for (int step = 0; step < 2; ++step) // The second finds what the first left behind.
      REQUIRE(network->gradient(data->train, batch, here.views, here.gradient_views));
    if (seed == 1)
      first.gradients = here.gradients;
    REQUIRE(here.gradients == first.gradients);
  }
}

TEST_CASE("a device without enough memory is told in one line") {
  const auto data = some_data(false);
  const auto shape = parse_model("mlp:300", *data);
  REQUIRE(shape);
  const auto none =
    device_network::make(troupe::emulate_devices({.memory_bytes = 1000}), 0, shape->widths);
  REQUIRE_FALSE(none);
  CHECK(none.error().text
        == "device 0 is out of memory: 28800 bytes asked for, 1000 of 1000 are free");
  auto network =
    device_network::make(troupe::emulate_devices({.memory_bytes = 80'000}), 0, shape->widths);
  REQUIRE(network);
  one_side here(*shape);
  const std::vector<std::uint32_t> batch(20, 1);
  const auto step = network->gradient(data->train, batch, here.views, here.gradient_views);
  REQUIRE_FALSE(step);
  CHECK(step.error().text.starts_with("device 0 is out of memory: "));
}

TEST_CASE("places are chosen for what the job is") {
  const auto data = some_data(true);
  const auto shape = parse_model("mlp:8", *data);
  auto rows = parse_model("mlp:8", *data, true);
  REQUIRE(shape);
  REQUIRE(rows);
  troupe::run_options options;
  const auto places = choose_places("cpu+cuda-twin", *shape, options);
  REQUIRE(places);
  CHECK(*places == std::vector<troupe::device_place>{{}, twin});
  CHECK(choose_places("cpu", *rows, options));
  CHECK_FALSE(choose_places("cuda-twin", *rows, options));
  CHECK_FALSE(choose_places("gpu", *shape, options));
  options.record_directory = "somewhere";
  CHECK(choose_places("cpu", *shape, options));
  CHECK_FALSE(choose_places("cuda-twin", *shape, options));
  options.record_directory.reset();
  options.here = {{troupe::role::server, 0}};
  CHECK(choose_places("cuda:1023", *shape, options)); // Nobody here computes.
}
