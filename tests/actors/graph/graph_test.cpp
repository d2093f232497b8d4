#include "actors/graph/graph.hpp"
#include "actors/graph/make_job.hpp"
#include "tests/actors/tiny_training.hpp"

#include "doctest/doctest.h"

namespace graph_test {

using namespace troupe;
using namespace troupe::test;

namespace {

class blind_evaluator : public evaluator {
public:
  evaluation evaluate(const_tensors) override { return {}; }
};

std::string rejection_of(const graph& g) {
  const auto valid = g.validate();
  if (valid)
    return {};
  CHECK(valid.error().code == errc::invalid_argument);
  return valid.error().text;
}

} // namespace

TEST_CASE("a_graph_that_is_not_wired_says_which_call_is_missing") {
  graph g;
  CHECK(rejection_of(g) == "the graph has no servers with tables: call graph::servers");
  const auto parameters = g.servers({table_of("w", 4)});
  CHECK(rejection_of(g) == "the graph has no workers: call graph::workers");
  auto workers = g.workers(10, trainers(constant_gradient(1)));
  CHECK(rejection_of(g) == "the graph's workers lead nowhere: call .into(servers)");
  workers.into({});
  CHECK(rejection_of(g) == "the graph's workers lead nowhere: call .into(servers)");
  workers.into(parameters);
  CHECK(rejection_of(g).empty());
  auto evaluator = g.evaluator([] { return std::make_unique<blind_evaluator>(); });
  CHECK(rejection_of(g) == "the graph's evaluator sees no parameters: call .of(servers)");
  evaluator.of(parameters);
  CHECK(rejection_of(g).empty());
}

TEST_CASE("a_graph_has_one_of_each") {
  graph twice;
  twice.servers({table_of("w", 4)});
  const auto parameters = twice.servers({table_of("bias", 1)});
  twice.workers(10, trainers(constant_gradient(1))).into(parameters);
  CHECK(rejection_of(twice) == "graph::servers was called twice: give all tables to one call");
  run_options options;
  auto g = tiny_graph(options, 100, to_three);
  CHECK(rejection_of(g).empty());
  g.workers(10, trainers(constant_gradient(1)));
  CHECK(rejection_of(g) == "graph::workers was called twice: all workers of a graph are alike");
  graph evaluated;
  const auto make = [] { return std::make_unique<blind_evaluator>(); };
  evaluated.evaluator(make);
  evaluated.evaluator(make);
  CHECK(rejection_of(evaluated) == "graph::evaluator was called twice: a graph has one evaluator");
}

TEST_CASE("nodes_of_another_graph_are_refused") {
  graph one;
  const auto parameters = one.servers({table_of("w", 4)});
  graph other;
  const auto own = other.servers({table_of("w", 4)});
  auto workers = other.workers(10, trainers(constant_gradient(1)));
  workers.into(parameters);
  CHECK(rejection_of(other) == "the graph's nodes lead to the servers of another graph");
  workers.into(own);
  CHECK(rejection_of(other) == "the graph's nodes lead to the servers of another graph");
}

TEST_CASE("a_job_is_made_from_graph_and_command_line") {
  run_options options;
  options.workers = 3;
  options.servers = 2;
  options.epochs = 4;
  options.batch_samples = 8;
  options.seed = 5;
  options.partitions = 16;
  const auto g = tiny_graph(options, 100, to_three);
  const auto job = make_job("tiny", g, options);
  CHECK(validate(job));
  CHECK(job.name == "tiny");
  CHECK(job.workers == 3);
  CHECK(job.servers == 2);
  CHECK(job.epochs == 4);
  CHECK(job.batches_per_epoch() == 13);
  CHECK(job.tables == g.tables());
  auto other = g;
  other.dataset_id("labels 17");
  CHECK(make_job("tiny", other, options).name == "tiny on labels 17");
  CHECK(fingerprint(make_job("tiny", other, options)) != fingerprint(job));
  options.sync.mode = consistency_mode::hogwild;
  CHECK(make_job("tiny", g, options).servers == 1);
}

} // namespace graph_test
