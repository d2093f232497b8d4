// Trains with few exchanges: each worker takes --local-steps steps of its own between two of them.
// The optimiser of the servers takes outer steps (Stich 2019; Douillard et al. 2023, "DiLoCo").
#include "examples/02_async_sgd/data/graph_data.hpp"
#include "examples/02_async_sgd/model.hpp"
#include "examples/02_async_sgd/required.hpp"
#include "troupe/troupe.hpp"

#include <memory>
#include <string>

int main(int argc, char** argv) {
  std::string data = "digits", shape = "mlp:256";
  std::uint64_t steps = 10;
  double rate = 0.1, momentum = 0;
  bool keep = false;
  troupe::program program{"local_steps", "Trains a classifier with few exchanges."};
  program.option("--data", data, "digits, mnist:DIR, libsvm:TRAIN,TEST or csv:TRAIN,TEST");
  program.option("--model", shape, "softmax, or mlp:WIDTH,... of the hidden layers");
  program.option("--local-steps", steps,
                 "Steps of a worker between two exchanges; --batch counts "
                 "the samples of all of them",
                 1, 1'000'000);
  program.option("--local-lr", rate, "Learning rate of these steps", 1e-9, 1e9);
  program.option("--local-momentum", momentum, "Momentum of these steps", 0, 0.9999);
  program.flag("--keep", keep, "Keep the momentum of these steps in the worker");

  return program.run(argc, argv, [&](const troupe::run_options& options) {
    const auto samples = std::make_shared<const async_sgd::dataset>(
      async_sgd::required(async_sgd::load_dataset(data, {})));
    const auto model = async_sgd::required(async_sgd::parse_model(shape, *samples, false));
    const troupe::local_step_options local{.steps = static_cast<std::uint32_t>(steps),
                                           .optimizer = {.kind = troupe::optimizer_kind::momentum,
                                                         .learning_rate = static_cast<float>(rate),
                                                         .momentum = static_cast<float>(momentum)},
                                           .keep = keep};

    troupe::graph g;
    async_sgd::add_data(g, *samples);
    auto store = options.store(model.tables());
    // So sgd takes over the mean of the workers' values: bsp has the mean of their differences, and
    // other modes take each difference by itself.
    const bool has_means = options.sync.traits().clock_updates;
    const auto rate_of_store = has_means ? 1.0f : 1.0f / static_cast<float>(options.workers.count);
    if (!options.given.contains("--lr"))
      for (auto& table : store.tables())
        table.optimizer.learning_rate = rate_of_store;
    auto values = g.add("model", std::move(store));
    const auto make = [=] { return make_trainer(model, samples); };
    auto learners = g.add("learners", options.workers_of(samples->train.labels.size(),
                                                         troupe::local_steps(make, local)));
    learners.into(options.stages(), values);
    g.add("test", troupe::evaluate{[=] { return make_evaluator(model, samples); }}).into(values);
    return g;
  });
}
