// Trains with clipped, noisy gradients: a push function clips the gradient of each batch to a norm
// and adds noise, before it leaves the worker (after Abadi et al. 2016, "Deep learning with
// differential privacy", who clip each sample). The noise hides a batch from readers of the
// parameters that do not know --seed. It does not hide it from the servers.
//
// With --buffer K, servers add up K gradients and apply them together, each with less weight the
// older it is: FedBuff (Nguyen et al. 2022, "Federated learning with buffered asynchronous
// aggregation").
#include "examples/02_async_sgd/data/graph_data.hpp"
#include "examples/02_async_sgd/model.hpp"
#include "examples/02_async_sgd/required.hpp"
#include "troupe/troupe.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>

namespace {

/// Adds up gradients in the state; each Kth step applies their mean. Parameters: K, and the power
/// by which staleness lowers the weight of a gradient.
bool fedbuff(const troupe::step_info& info, std::span<float> weights, std::span<float> sum,
             std::span<const float> gradient) {
  const float count = info.parameters[0], power = info.parameters[1];
  const bool applies = info.step % static_cast<std::uint64_t>(count) == 0;
  const float weight = info.scale / std::pow(1.0f + static_cast<float>(info.staleness), power);
  bool finite = true;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    sum[i] += weight * gradient[i];
    if (applies) {
      weights[i] -= info.rate / count * sum[i];
      sum[i] = 0;
    }
    finite = finite && std::isfinite(weights[i]);
  }
  return finite;
}

} // namespace

int main(int argc, char** argv) {
  std::string data = "digits", shape = "softmax";
  double bound = 1, sigma = 0.01;
  std::uint64_t buffer = 0;
  troupe::program program{"private_sgd", "Trains a classifier with clipped, noisy gradients."};
  program.option("--data", data, "digits, mnist:DIR, libsvm:TRAIN,TEST or csv:TRAIN,TEST");
  program.option("--model", shape, "softmax, or mlp:WIDTH,... of the hidden layers");
  program.option("--bound", bound, "Largest L2 norm of a batch's gradient", 1e-6, 1e6);
  program.option("--sigma", sigma, "Standard deviation of the noise, in units of --bound", 0, 100);
  program.option("--buffer", buffer, "Gradients that servers apply together; 0: each by itself", 0,
                 1000);
  program.function("fedbuff/1", {fedbuff, 1});

  return program.run(argc, argv, [&](const troupe::run_options& options) {
    const auto samples = std::make_shared<const async_sgd::dataset>(
      async_sgd::required(async_sgd::load_dataset(data, {})));
    const auto model = async_sgd::required(async_sgd::parse_model(shape, *samples, false));
    const auto privacy = [=](const troupe::push_info& push, troupe::mutable_tensors gradient) {
      double squares = 1e-30;
      for (const auto table : gradient)
        for (const float x : table)
          squares += double{x} * x;
      const auto scale = static_cast<float>(std::min(1.0, bound / std::sqrt(squares)));
      push.notes.count("clipped", scale < 1 ? 1 : 0);
      std::mt19937_64 random{push.seed};     // A batch that is computed again gets the same noise.
      std::normal_distribution<float> noise; // Its deviation cannot be 0, so it is scaled here.
      const auto deviation = static_cast<float>(sigma * bound);
      for (const auto table : gradient)
        for (float& x : table)
          x = x * scale + deviation * noise(random);
    };

    auto tables = options.store(model.tables());
    for (auto& table : tables.tables())
      if (buffer > 0)
        table.optimizer = {.kind = troupe::optimizer_kind::user,
                           .learning_rate = options.optimizer.learning_rate,
                           .function = "fedbuff/1",
                           .parameters = {static_cast<float>(buffer), 0.5f}};

    troupe::graph g;
    async_sgd::add_data(g, *samples);
    auto store = g.add("model", std::move(tables));
    auto learners = g.add("learners", options.workers_of(samples->train.labels.size(), [=] {
      return make_trainer(model, samples);
    }));
    learners.into(troupe::map_push("privacy", privacy), options.stages(), store);
    g.add("test", troupe::evaluate{[=] { return make_evaluator(model, samples); }}).into(store);
    return g;
  });
}
