// Trains a convolution network that is written as a module of libtorch. Its values stay where
// Troupe has them: the module computes on views of the pulled values and adds its gradients into
// the buffers that Troupe pushes.
#include "examples/02_async_sgd/data/graph_data.hpp"
#include "examples/02_async_sgd/required.hpp"
#include "examples/09_libtorch/model.hpp"
#include "troupe/troupe.hpp"

#include <memory>
#include <string>
#include <utility>

int main(int argc, char** argv) {
  std::string data = "digits";
  double dropout = 0.2;
  troupe::run_options defaults;
  defaults.optimizer = {.kind = troupe::optimizer_kind::adam, .learning_rate = 0.002f};
  troupe::program program{"libtorch", "Trains a convolution network of libtorch.", defaults};
  program.option("--data", data, "digits or mnist:DIR");
  program.option("--dropout", dropout, "Share of the hidden layer that each sample drops", 0, 0.9);

  return program.run(argc, argv, [&](const troupe::run_options& options) {
    const auto images = std::make_shared<const async_sgd::dataset>(
      async_sgd::required(async_sgd::load_dataset(data, {})));
    troupe::graph g;
    async_sgd::add_data(g, *images);
    auto model = g.add("model", options.store(async_sgd::required(convolution::tables(*images))));
    auto learners = g.add("learners", options.workers_of(images->train.labels.size(), [=] {
      return convolution::make_trainer(images, dropout);
    }));
    learners.into(options.stages(), model);
    g.add("test", troupe::evaluate{[=] { return convolution::make_evaluator(images); }})
      .into(model);
    return g;
  });
}
