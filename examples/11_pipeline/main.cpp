// Trains a model in parts: each part has a process of its own, and micro-batches flow through them
// (Huang et al. 2019, "GPipe"; Narayanan et al. 2021, "PipeDream-flush").
#include "examples/02_async_sgd/data/graph_data.hpp"
#include "examples/02_async_sgd/model.hpp"
#include "examples/02_async_sgd/required.hpp"
#include "examples/11_pipeline/layers.hpp"
#include "troupe/troupe.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  std::string data = "digits", shape = "mlp:256,128";
  std::uint64_t parts = 2;
  troupe::run_options defaults;
  defaults.workers.count = 1; // One line.
  troupe::program program{"pipeline", "Trains a classifier that is cut into parts.", defaults};
  program.option("--data", data, "digits, mnist:DIR, libsvm:TRAIN,TEST or csv:TRAIN,TEST");
  program.option("--model", shape, "mlp:WIDTH,... of the hidden layers");
  program.option("--parts", parts, "Parts of the model; each has about as many layers");

  return program.run(argc, argv, [&](const troupe::run_options& options) {
    const auto samples = std::make_shared<const async_sgd::dataset>(
      async_sgd::required(async_sgd::load_dataset(data, {})));
    const auto model = async_sgd::required(async_sgd::parse_model(shape, *samples, false));
    if (parts < 1 || parts > model.layers())
      throw std::invalid_argument{"--parts: " + shape + " has " + std::to_string(model.layers())
                                  + " layers, so it has 2 to " + std::to_string(model.layers())
                                  + " parts"};

    std::vector<troupe::part_spec> line;
    for (std::size_t i = 0; i < parts; ++i) {
      const auto first = i * model.layers() / parts, last = (i + 1) * model.layers() / parts;
      std::vector<std::string> tables;
      for (auto layer = first + 1; layer <= last; ++layer)
        for (const auto* const kind : {"w", "b"})
          tables.push_back(kind + std::to_string(layer));
      line.push_back(
        {tables,
         [=] { return std::make_unique<pipeline::layers>(model.widths, first, last, samples); }});
    }

    troupe::graph g;
    async_sgd::add_data(g, *samples);
    auto store = g.add("model", options.store(model.tables()));
    g.add("line", options.pipeline_of(samples->train.labels.size(), line))
      .into(options.stages(), store);
    g.add("test", troupe::evaluate{[=] { return make_evaluator(model, samples); }}).into(store);
    return g;
  });
}
