#include "examples/02_async_sgd/device_trainer.hpp"

#include "examples/02_async_sgd/device_network.hpp"
#include "kernels/devices/emulated_platform.hpp"

#include "tests/numbers.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace device_trainer_test {

using namespace async_sgd;

namespace {

std::shared_ptr<const dataset> some_data(bool sparse) {
  constexpr std::uint32_t features = 23, rows = 40;
  auto data = std::make_shared<dataset>();
  data->features = features;
  data->classes = 5;
  troupe::test::numbers random{1};
  float_rows dense;
  sparse_rows few;
  for (std::uint32_t i = 0; i < rows; ++i) {
    data->train.labels.push_back(i * 7 % 5);
    for (std::uint32_t feature = 0; feature < features; ++feature) {
      const float value = random.unit();
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
  /// `rows`: the number of rows of a sparse table.
  explicit one_side(const model& shape, std::uint64_t seed = 1, std::size_t rows = 0) {
    troupe::test::numbers random{seed};
    for (const auto& table : shape.tables()) {
      const std::size_t size = table.is_sparse() ? rows * table.width : table.size();
      parameters.emplace_back(size);
      for (float& x : parameters.back())
        x = random.unit();
      gradients.emplace_back(size, 77.0f);
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

void check_close(const std::vector<std::vector<float>>& wanted,
                 const std::vector<std::vector<float>>& got) {
  for (std::size_t t = 0; t < wanted.size(); ++t)
    for (std::size_t i = 0; i < wanted[t].size(); ++i)
      REQUIRE(std::fabs(wanted[t][i] - got[t][i]) <= 2e-5f * (1.0f + std::fabs(wanted[t][i])));
}

constexpr troupe::device_place emulated{troupe::device_kind::emulated, 0};

} // namespace

TEST_CASE("a device's trainer computes the gradients of the CPU's") {
  for (const bool sparse : {false, true})
    for (const char* name : {"softmax", "mlp:8", "mlp:300,7,12"}) {
      CAPTURE(name);
      CAPTURE(sparse);
      const auto data = some_data(sparse);
      const auto shape = parse_model(name, *data);
      REQUIRE(shape);
      const auto cpu = make_trainer(*shape, data),
                 there = make_trainer_at(emulated, shared_devices{{emulated}, 1}, *shape, data);
      for (const std::vector<std::uint32_t>& batch :
           {std::vector<std::uint32_t>{3, 1, 4}, {5}, {9, 2, 6, 5, 35, 0, 11, 11}, {7, 8}}) {
        one_side a(*shape), b(*shape);
        troupe::batch work;
        work.samples = batch;
        const double wanted = cpu->gradient(work, a.views, a.gradient_views);
        std::vector<std::vector<float>> told(b.gradients.size());
        work.on_ready = [&](std::size_t table) { told[table] = b.gradients[table]; };
        CHECK(there->gradient(work, b.views, b.gradient_views)
              == doctest::Approx(wanted).epsilon(1e-5));
        CHECK(told == b.gradients);
        check_close(a.gradients, b.gradients);
      }
    }
}

TEST_CASE("rows of features are the CPU's, the dense layers above them the device's") {
  const auto data = some_data(true);
  for (const char* name : {"mlp:8", "mlp:30,7"}) {
    CAPTURE(name);
    const auto shape = parse_model(name, *data, true);
    REQUIRE(shape);
    const auto cpu = make_trainer(*shape, data),
               split = make_trainer_at(emulated, shared_devices{{emulated}, 1}, *shape, data);
    for (const std::vector<std::uint32_t>& batch :
         {std::vector<std::uint32_t>{3, 1, 4}, {5}, {9, 2, 6, 5, 35, 0, 11, 11}, {7, 8}}) {
      troupe::batch work;
      work.samples = batch;
      const std::size_t tables = 2 * shape->layers();
      std::vector<std::vector<std::uint64_t>> touched(tables), touched_there(tables);
      cpu->keys(work, touched);
      split->keys(work, touched_there);
      REQUIRE(touched == touched_there);
      auto& features = touched[0];
      std::ranges::sort(features);
      features.erase(std::unique(features.begin(), features.end()), features.end());
      const std::vector<std::span<const std::uint64_t>> keys(touched.begin(), touched.end());
      work.keys = keys;
      one_side a(*shape, 1, features.size()), b(*shape, 1, features.size());
      const double wanted = cpu->gradient(work, a.views, a.gradient_views);
      CHECK(split->gradient(work, b.views, b.gradient_views)
            == doctest::Approx(wanted).epsilon(1e-5));
      check_close(a.gradients, b.gradients);
    }
  }
}

TEST_CASE("a device's work is ordered whichever of its streams is slow") {
  const auto data = some_data(false);
  const auto shape = parse_model("mlp:16,8", *data);
  REQUIRE(shape);
  const auto cpu = make_trainer(*shape, data);
  // Each step has its own parameters and rows, so a mix-up of steps changes the result.
  const std::vector<std::vector<std::uint32_t>> batches{
    {1, 2, 3, 4, 5}, {6, 7, 8, 9, 10}, {11, 12, 13}};
  std::vector<one_side> first;
  std::vector<double> losses;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    auto network = device_network::make(troupe::emulate_devices({.seed = seed}), 0, shape->widths);
    REQUIRE(network);
    for (std::size_t step = 0; step < batches.size(); ++step) {
      CAPTURE(step);
      one_side here(*shape, step + 1);
      const auto loss =
        network->gradient(data->train, batches[step], here.views, here.gradient_views);
      REQUIRE(loss);
      if (seed == 1) {
        one_side wanted(*shape, step + 1);
        troupe::batch work;
        work.samples = batches[step];
        REQUIRE(*loss
                == doctest::Approx(cpu->gradient(work, wanted.views, wanted.gradient_views))
                     .epsilon(1e-5));
        check_close(wanted.gradients, here.gradients);
        first.push_back(std::move(here));
        losses.push_back(*loss);
        continue;
      }
      REQUIRE(here.gradients == first[step].gradients);
      REQUIRE(*loss == losses[step]);
    }
  }
}

TEST_CASE("a gradient that stays on its device is the one that would have come down") {
  const auto data = some_data(false);
  const auto shape = parse_model("mlp:300,7", *data);
  REQUIRE(shape);
  const std::vector<std::uint32_t> batch{3, 1, 4, 1, 5};
  troupe::batch work;
  work.samples = batch;
  const shared_devices devices{{emulated}, 2};
  const auto here = make_trainer_at(emulated, devices, *shape, data);
  const auto there = make_trainer_at({troupe::device_kind::emulated, 1}, devices, *shape, data);
  one_side wanted(*shape), found(*shape);
  const double loss = here->gradient(work, wanted.views, wanted.gradient_views);
  std::vector<troupe::device_gradient> left;
  for (int step = 0; step < 3; ++step) // No step overwrites an earlier gradient that is still held.
    left.push_back(*there->gradient_on_device(work, found.views, {}));
  for (const auto& x : left) {
    CHECK(x.loss == loss);
    CHECK(x.values->device == 1);
    REQUIRE(x.values->group->fetch(x.values->device, x.values->values, found.gradient_views));
    CHECK(found.gradients == wanted.gradients);
    double squares = 0;
    for (const auto& table : wanted.gradients)
      for (const float value : table)
        squares += static_cast<double>(value) * static_cast<double>(value);
    CHECK(x.squares == doctest::Approx(squares).epsilon(1e-12));
  }
}

TEST_CASE("gradients that stay are ordered whichever stream of which device is slow") {
  const auto data = some_data(false);
  const auto shape = parse_model("mlp:16,8", *data);
  REQUIRE(shape);
  const auto cpu = make_trainer(*shape, data);
  const std::vector<std::vector<std::uint32_t>> batches{{1, 2, 3, 4, 5}, {6, 7, 8}, {9, 10}};
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    CAPTURE(seed);
    const troupe::emulated_machine machine{{.devices = 2, .seed = seed}};
    const auto group = std::make_shared<troupe::device_group>(
      [&] { return troupe::result<std::unique_ptr<troupe::device_platform>>{machine.open()}; });
    auto first = device_network::make(machine.open(), 0, shape->widths);
    auto second = device_network::make(machine.open(), 1, shape->widths);
    REQUIRE((first && second));
    troupe::shared_parameters shared;
    for (std::size_t step = 0; step < batches.size(); ++step) {
      CAPTURE(step);
      one_side wanted(*shape, step + 1), here(*shape, step + 1);
      const auto memory = std::make_shared<const float>();
      troupe::value_identity which;
      which.add(memory);
      troupe::batch work;
      work.samples = batches[step];
      cpu->gradient(work, wanted.views, wanted.gradient_views);
      for (auto* const network : {&*first, &*second}) {
        const auto left =
          network->gradient_on_device(data->train, batches[step], here.views, {shared, which});
        REQUIRE(left);
        REQUIRE(group->fetch(network == &*first ? 0 : 1, {left->gradient.get(), left->count},
                             here.gradient_views));
        check_close(wanted.gradients, here.gradients);
      }
    }
  }
}

TEST_CASE("a gradient that stays on its device is known not to be finite") {
  const auto data = some_data(false);
  const auto shape = parse_model("softmax", *data);
  REQUIRE(shape);
  const std::vector<std::uint32_t> batch{3, 1};
  troupe::batch work;
  work.samples = batch;
  const auto there = make_trainer_at(emulated, shared_devices{{emulated}, 1}, *shape, data);
  one_side here(*shape);
  CHECK(std::isfinite(there->gradient_on_device(work, here.views, {})->squares));
  here.parameters[1][2] = INFINITY;
  CHECK_FALSE(std::isfinite(there->gradient_on_device(work, here.views, {})->squares));
}

TEST_CASE("the same parameters go up once, and from there to the other devices") {
  const auto data = some_data(false);
  const auto shape = parse_model("mlp:300,7", *data);
  REQUIRE(shape);
  const std::vector<std::uint32_t> batch{3, 1, 4};
  troupe::batch work;
  work.samples = batch;
  const std::uint64_t batch_bytes = batch.size() * (23 + 1) * 4; // 23 features and 1 label.
  const shared_devices devices{{emulated}, 4};
  std::vector<std::unique_ptr<troupe::trainer>> trainers;
  for (std::uint32_t i = 0; i < 4; ++i)
    trainers.push_back(make_trainer_at({troupe::device_kind::emulated, i}, devices, *shape, data));
  one_side here(*shape);
  std::uint64_t parameter_bytes = 0;
  for (const auto& table : here.parameters)
    parameter_bytes += table.size() * sizeof(float);
  std::vector<float> wanted;
  for (int step = 0; step < 3; ++step) {
    CAPTURE(step);
    // Each step has other values in the same memory.
    for (auto& table : here.parameters)
      for (float& x : table)
        x *= 0.5f;
    const std::shared_ptr<const float> memory{here.parameters[0].data(), [](const float*) {}};
    troupe::value_identity which;
    which.add(memory);
    one_side cpu(*shape);
    cpu.parameters = here.parameters;
    const auto before = devices.copied_by_emulated();
    for (const auto& one : trainers) {
      const auto left = *one->gradient_on_device(work, here.views, which);
      one_side found(*shape);
      REQUIRE(
        left.values->group->fetch(left.values->device, left.values->values, found.gradient_views));
      if (one == trainers.front())
        cpu.gradients = found.gradients;
      CHECK(found.gradients == cpu.gradients);
    }
    const auto after = devices.copied_by_emulated();
    CHECK(after.to_devices - before.to_devices == parameter_bytes + 4 * batch_bytes);
    CHECK(after.between_devices - before.between_devices == 3 * parameter_bytes);
  }
}

TEST_CASE("a device whose parameters were on a lost one has them from the host") {
  const auto data = some_data(false);
  const auto shape = parse_model("softmax", *data);
  REQUIRE(shape);
  const troupe::emulated_machine machine{{.devices = 2}};
  const std::vector<std::uint32_t> batch{3, 1, 4};
  troupe::shared_parameters shared;
  troupe::value_identity which;
  const auto memory = std::make_shared<const float>();
  which.add(memory);
  auto first = device_network::make(machine.open(), 0, shape->widths);
  auto second = device_network::make(machine.open(), 1, shape->widths);
  REQUIRE((first && second));
  one_side here(*shape);
  REQUIRE(first->gradient_on_device(data->train, batch, here.views, {shared, which}));
  machine.open()->lose(0);
  CHECK(second->gradient_on_device(data->train, batch, here.views, {shared, which}));
}

TEST_CASE("workers of a process have emulated devices of their own, and GPUs in turn") {
  const troupe::device_place gpu{troupe::device_kind::cuda, 5};
  const shared_devices devices{{emulated, gpu, {}}, 2};
  CHECK(devices.place_of(0) == emulated);
  CHECK(devices.place_of(1) == gpu);
  CHECK(devices.place_of(2) == troupe::device_place{});
  CHECK(devices.place_of(3) == troupe::device_place{troupe::device_kind::emulated, 1});
  CHECK(devices.place_of(7) == gpu);
}

TEST_CASE("a device without enough memory is told in one line") {
  const auto data = some_data(false);
  const auto shape = parse_model("mlp:300", *data);
  REQUIRE(shape);
  const auto none =
    device_network::make(troupe::emulate_devices({.memory_bytes = 1000}), 0, shape->widths);
  REQUIRE_FALSE(none);
  CHECK(none.error().text
        == "device 0 is out of memory: 34820 bytes asked for, 1000 of 1000 are free");
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
  const auto places = choose_places("cpu+emulated", *shape, options);
  REQUIRE(places);
  CHECK(*places == std::vector<troupe::device_place>{{}, emulated});
  CHECK(choose_places("cpu", *rows, options));
  CHECK(choose_places("emulated", *rows, options));
  const auto no_dense_layer = parse_model("softmax", *data, true);
  REQUIRE(no_dense_layer);
  CHECK_FALSE(choose_places("emulated", *no_dense_layer, options));
  CHECK_FALSE(choose_places("gpu", *shape, options));
  options.record_directory = "somewhere";
  CHECK(choose_places("cpu", *shape, options));
  CHECK_FALSE(choose_places("emulated", *shape, options));
  options.record_directory.reset();
  options.here = {{troupe::role::server, 0}};
  CHECK(choose_places("cuda:1023", *shape, options)); // No worker runs here.
}

} // namespace device_trainer_test
