// Trains the upper layers of a network on the output of its lower layers, which are frozen: they
// begin with the values of a file, such as async_sgd --export wrote, and take no steps.
#include "examples/02_async_sgd/data/graph_data.hpp"
#include "examples/02_async_sgd/model.hpp"
#include "examples/02_async_sgd/required.hpp"
#include "troupe/troupe.hpp"

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

int main(int argc, char** argv) {
  std::string data = "digits", shape = "mlp:64", base;
  std::uint64_t layers = 1;
  troupe::program program{"fine_tuning", "Trains the upper layers of a network, on frozen ones."};
  program.option("--data", data, "digits, mnist:DIR, libsvm:TRAIN,TEST or csv:TRAIN,TEST");
  program.option("--model", shape, "mlp:WIDTH,... of the hidden layers");
  program.option("--base", base, "File of the frozen layers (.npz, .safetensors)");
  program.option("--frozen", layers, "Layers that are frozen, from the first one on", 0, 16);

  return program.run(argc, argv, [&](const troupe::run_options& options) {
    const auto samples = std::make_shared<const async_sgd::dataset>(
      async_sgd::required(async_sgd::load_dataset(data, {})));
    const auto model = async_sgd::required(async_sgd::parse_model(shape, *samples, false));
    if (layers > 0 && base.empty())
      throw std::invalid_argument{"--frozen needs --base FILE, with the values of these layers"};

    auto tables = model.tables(); // w1, b1, w2, b2, ...
    for (std::size_t i = 0; i < tables.size() && i < 2 * layers; ++i) {
      tables[i].frozen = true;
      tables[i].values = troupe::from_file(base);
    }

    troupe::graph g;
    async_sgd::add_data(g, *samples);
    auto values = g.add("model", options.store(tables));
    auto learners = g.add("learners", options.workers_of(samples->train.labels.size(), [=] {
      return make_trainer(model, samples);
    }));
    learners.into(options.stages(), values);
    g.add("test", troupe::evaluate{[=] { return make_evaluator(model, samples); }}).into(values);
    return g;
  });
}
