// Runs whole jobs whose workers share a process, each with an emulated device of its own.
#include "examples/02_async_sgd/shared_devices.hpp"

#include "actors/graph/program.hpp"
#include "examples/02_async_sgd/device_trainer.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <string>

namespace shared_devices_test {

using namespace async_sgd;

namespace {

constexpr std::uint32_t features = 64, classes = 4, samples = 256, batch_samples = 4, epochs = 10;
constexpr std::uint64_t batches = epochs * samples / batch_samples;
constexpr std::uint64_t parameter_bytes = (features + 1) * classes * sizeof(float);

/// Returns samples in which class i has ones where the other classes have zeros.
std::shared_ptr<const dataset> clear_cut() {
  auto data = std::make_shared<dataset>();
  data->features = features;
  data->classes = classes;
  float_rows rows;
  for (std::uint32_t i = 0; i < samples; ++i) {
    data->train.labels.push_back(i % classes);
    for (std::uint32_t feature = 0; feature < features; ++feature)
      rows.values.push_back(feature % classes == i % classes ? 1.0f : 0.0f);
  }
  data->train.rows = rows;
  return data;
}

/// Checks that every class has the largest weights at its ones.
class class_finder final : public troupe::evaluator {
public:
  explicit class_finder(bool& found) : found_(found) {}

  troupe::evaluation evaluate(troupe::const_tensors parameters) override {
    found_ = true;
    for (std::uint32_t feature = 0; feature < features; ++feature) {
      const auto row = parameters[0].subspan(std::size_t{feature} * classes, classes);
      found_ = found_ && std::ranges::max_element(row) - row.begin() == feature % classes;
    }
    return {};
  }

private:
  bool& found_;
};

/// Trains, and returns the bytes copied in each direction. The run is simulated, so that each round
/// has all workers.
troupe::copied_bytes train(const std::string& sync, std::uint32_t workers_per_process) {
  const auto data = clear_cut();
  const auto shape = *parse_model("softmax", *data);
  const auto devices = std::make_shared<const shared_devices>(
    std::vector{troupe::device_place{troupe::device_kind::emulated, 0}}, workers_per_process);
  bool found = false;
  std::vector<std::string> words{"train",
                                 "--simulate",
                                 "--sync",
                                 sync,
                                 "--lr",
                                 "0.02",
                                 "--batch",
                                 std::to_string(batch_samples),
                                 "--epochs",
                                 std::to_string(epochs),
                                 "--workers",
                                 "4",
                                 "--workers-per-process",
                                 std::to_string(workers_per_process)};
  std::vector<char*> arguments;
  for (auto& x : words)
    arguments.push_back(x.data());
  troupe::program program{"train", "Trains on shared devices."};
  const int status = program.run(
    static_cast<int>(arguments.size()), arguments.data(), [&](const troupe::run_options& options) {
      troupe::graph g;
      auto store = g.add("model", options.store(shape.tables()));
      auto learners = g.add("learners", options.workers_of(samples, [=](std::uint32_t worker) {
        return make_trainer_at(devices->place_of(worker), *devices, shape, data);
      }));
      learners.into(options.stages(), store);
      g.add("test", troupe::evaluate{[&] { return std::make_unique<class_finder>(found); }})
        .into(store);
      return g;
    });
  CHECK(status == 0);
  CHECK(found);
  return devices->copied_by_emulated();
}

} // namespace

TEST_CASE("four workers with a device each: a quarter of the bytes between host and devices") {
  for (const std::string sync : {"asp", "ssp:2"}) {
    CAPTURE(sync);
    const auto alone = train(sync, 1), together = train(sync, 4);
    // `up` and `down` are the bytes of all batches without parameters and gradients.
    const std::uint64_t up = batches * batch_samples * (features + 1) * sizeof(float);
    const std::uint64_t down = batches * batch_samples * sizeof(float);
    CHECK(alone.to_devices == up + batches * parameter_bytes);
    CHECK(alone.from_devices == down + batches * parameter_bytes);
    CHECK(alone.between_devices == 0);
    constexpr std::uint64_t rounds = batches / 4;
    // The very first pull is answered before the other workers have pulled.
    CHECK(together.to_devices == up + (rounds + 1) * parameter_bytes);
    CHECK(together.from_devices == down + batches * sizeof(double) + rounds * parameter_bytes);
    CHECK(together.between_devices == (rounds * 2 * 3 - 1) * parameter_bytes);
  }
}

TEST_CASE("four workers with a device each: in bsp slots go alone, and so do gradients") {
  const auto together = train("bsp", 4);
  CHECK(together.from_devices
        == batches * batch_samples * sizeof(float) + batches * parameter_bytes);
}

} // namespace shared_devices_test
