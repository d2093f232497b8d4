// Trains on one memory that all threads write without locks (Recht et al. 2011, "Hogwild!"). The
// program chooses this store itself, so --sync and the options of servers have no effect.
#include "examples/02_async_sgd/data/graph_data.hpp"
#include "examples/02_async_sgd/model.hpp"
#include "examples/02_async_sgd/required.hpp"
#include "troupe/troupe.hpp"

#include <memory>
#include <string>

int main(int argc, char** argv) {
  std::string data = "digits", shape = "softmax";
  troupe::program program{"hogwild", "Trains a classifier in memory that threads share."};
  program.option("--data", data, "digits, mnist:DIR, libsvm:TRAIN,TEST or csv:TRAIN,TEST");
  program.option("--model", shape, "softmax, or mlp:WIDTH,... of the hidden layers");

  return program.run(argc, argv, [&](const troupe::run_options& options) {
    const auto samples = std::make_shared<const async_sgd::dataset>(
      async_sgd::required(async_sgd::load_dataset(data, {})));
    const auto model = async_sgd::required(async_sgd::parse_model(shape, *samples, false));
    auto tables = model.tables();
    for (auto& table : tables)
      table.optimizer = options.optimizer;

    troupe::graph g;
    async_sgd::add_data(g, *samples);
    auto memory = g.add("memory", troupe::shared_memory{tables});
    auto learners = g.add("learners", options.workers_of(samples->train.labels.size(), [=] {
      return make_trainer(model, samples);
    }));
    learners.into(memory);
    g.add("test", troupe::evaluate{[=] { return make_evaluator(model, samples); }}).into(memory);
    return g;
  });
}
