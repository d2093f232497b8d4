// Factorises a matrix of ratings (Koren, Bell, Volinsky 2009, "Matrix factorization techniques for
// recommender systems"). Users and items are rows of sparse tables; workers pull and push the rows
// that occur in their batch, and each row has an optimiser state of its own.
#include "examples/02_async_sgd/required.hpp"
#include "examples/06_matrix_factorisation/model.hpp"
#include "troupe/troupe.hpp"

#include <memory>
#include <string>

int main(int argc, char** argv) {
  std::string data = "drawn";
  std::uint64_t factors = 20;
  double penalty = 0.1;
  troupe::run_options defaults;
  defaults.optimizer = {.kind = troupe::optimizer_kind::adagrad, .learning_rate = 0.05f};
  troupe::program program{"matrix_factorisation", "Predicts ratings by factors.", defaults};
  program.option("--data", data, "drawn, or movielens:TRAIN,TEST");
  program.option("--factors", factors, "Factors of a user and of an item", 1, 4000);
  program.option("--penalty", penalty, "Weight of the squares of biases and factors", 0, 1e3);

  return program.run(argc, argv, [&](const troupe::run_options& options) {
    const auto ratings = std::make_shared<const factorisation::ratings>(
      async_sgd::required(factorisation::load_ratings(data)));
    troupe::graph g;
    for (const auto& file : ratings->files)
      g.reads(file);
    for (const auto& line : ratings->remarks)
      g.remark(line);
    auto model =
      g.add("model", options.store(factorisation::tables(static_cast<std::uint32_t>(factors))));
    auto learners = g.add("learners", options.workers_of(ratings->train.size(), [=] {
      return make_trainer(ratings, penalty);
    }));
    learners.into(options.stages(), model);
    using enum factorisation::split;
    g.add("test", troupe::evaluate{[=] { return make_evaluator(ratings, test); }}).into(model);
    g.add("train", troupe::evaluate{[=] { return make_evaluator(ratings, train); }}).into(model);
    return g;
  });
}
