// Trains without servers: each worker has a copy of the model, and mixes it with those of its
// neighbours (Lian et al. 2017, "D-PSGD"; Lian et al. 2018, "AD-PSGD").
#include "examples/02_async_sgd/data/graph_data.hpp"
#include "examples/02_async_sgd/model.hpp"
#include "examples/02_async_sgd/required.hpp"
#include "troupe/troupe.hpp"

#include <memory>
#include <string>

int main(int argc, char** argv) {
  std::string data = "digits", shape = "mlp:256", with = "ring", how = "pairwise";
  troupe::program program{"gossip", "Trains a classifier without servers."};
  program.option("--data", data, "digits, mnist:DIR, libsvm:TRAIN,TEST or csv:TRAIN,TEST");
  program.option("--model", shape, "softmax, or mlp:WIDTH,... of the hidden layers");
  program.option("--neighbours", with,
                 "Which workers mix: ring, torus, torus:RxC, exponential, complete or file:PATH");
  program.option("--mixing", how,
                 "pairwise: after each step with one neighbour; each_step: with all of them");

  return program.run(argc, argv, [&](const troupe::run_options& options) {
    const auto samples = std::make_shared<const async_sgd::dataset>(
      async_sgd::required(async_sgd::load_dataset(data, {})));
    const auto model = async_sgd::required(async_sgd::parse_model(shape, *samples, false));
    const auto neighbours = async_sgd::required(troupe::neighbours::parsed(with));
    const auto mixing = async_sgd::required(troupe::parse_mixing(how));

    troupe::graph g;
    async_sgd::add_data(g, *samples);
    auto peers = g.add("peers", options.gossip_of(model.tables(), neighbours, mixing));
    auto learners =
      g.add("learners", options.workers_of(samples->train.labels.size(),
                                           [=] { return make_trainer(model, samples); }));
    learners.into(options.stages(), peers);
    g.add("test", troupe::evaluate{[=] { return make_evaluator(model, samples); }}).into(peers);
    return g;
  });
}
