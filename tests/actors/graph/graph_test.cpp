#include "actors/graph/graph.hpp"

#include "actors/protocol/worker/stage.hpp"
#include "actors/graph/nodes/raw_stage.hpp"
#include "tests/actors/tiny_training.hpp"

#include "doctest/doctest.h"

#include <memory>
#include <string>

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

workers some_workers() { return {.samples = 10, .make = trainers(constant_gradient(1))}; }
evaluate some_evaluator() {
  return {[] { return std::make_unique<blind_evaluator>(); }};
}
stage no_op(const char* name, traits what = {}) {
  return own_stage(name, what, [] { return std::make_unique<pass_through>(); });
}
stage unchanged(const char* name) {
  return map_push(name, [](const push_info&, mutable_tensors) {});
}

/// Returns what is wrong with a graph whose workers have this path.
template <class... Stages>
std::string rejection_with(Stages... stages) {
  graph g;
  auto model = g.add("model", servers{.tables = {table_of("w", 4)}});
  g.add("learners", some_workers()).into(std::move(stages)..., model);
  return rejection_of(g);
}

} // namespace

TEST_CASE("a_graph_that_is_not_wired_says_what_is_missing") {
  graph g;
  CHECK(rejection_of(g) == "the graph has no store: add servers with tables");
  const auto model = g.add("model", servers{.tables = {table_of("w", 4)}});
  CHECK(rejection_of(g) == "the graph has no workers: add troupe::workers");
  auto learners = g.add("learners", some_workers());
  CHECK(rejection_of(g) == "learners asks no store: call learners.into(...)");
  learners.into(model);
  CHECK(rejection_of(g).empty());
  auto test = g.add("test", some_evaluator());
  CHECK(rejection_of(g) == "test asks no store: call test.into(...)");
  test.into(model);
  CHECK(rejection_of(g).empty());
  learners.into(model);
  CHECK(rejection_of(g) == "learners has two paths: call into() once");
}

TEST_CASE("a_node_has_a_name_of_its_own") {
  for (const auto& [name, text] : {
         std::pair{"", "'' is no name of a node: use the characters a-z, 0-9 and _"},
         std::pair{"server", "'server' is the name of a role on the command line: rename the node"},
         std::pair{"Model", "'Model' is no name of a node: use the characters a-z, 0-9 and _"},
         std::pair{"parameters1", "the name of the node 'parameters1' has 11 characters: use at "
                                  "most 10"},
       }) {
    graph g;
    g.add(name, servers{.tables = {table_of("w", 4)}});
    CHECK(rejection_of(g) == text);
  }
  graph twice;
  auto model = twice.add("model", servers{.tables = {table_of("w", 4)}});
  twice.add("model", some_workers()).into(model);
  CHECK(rejection_of(twice) == "two parts of the graph are named 'model': rename one");
  CHECK(rejection_with(no_op("noise"), no_op("noise"))
        == "two parts of the graph are named 'noise': rename one");
  CHECK(rejection_with(no_op("much_too_long"))
        == "the name of the stage 'much_too_long' has 13 characters: use at most 10");
}

TEST_CASE("a_graph_has_one_store_and_one_node_of_workers_so_far") {
  graph g;
  auto one = g.add("one", servers{.tables = {table_of("w", 4)}});
  g.add("first", some_workers()).into(one);
  CHECK(rejection_of(g).empty());
  auto more = g;
  more.add("other", servers{.tables = {table_of("w", 4)}});
  CHECK(rejection_of(more) == "one and other both have a table 'w': a table lives in one store");
  more = g;
  more.add("other", shared_memory{{table_of("v", 4)}});
  CHECK(rejection_of(more) == "one and other are both stores: a graph has one so far");
  more = g;
  more.add("second", some_workers());
  CHECK(rejection_of(more)
        == "first and second are both workers: a graph has one node of workers, or one pipeline");
  graph empty;
  auto nothing = empty.add("model", servers{});
  empty.add("learners", some_workers()).into(nothing);
  CHECK(rejection_of(empty) == "model has no tables: give it one or more");
  graph idle;
  auto store = idle.add("model", servers{.tables = {table_of("w", 4)}});
  idle.add("learners", workers{.samples = 3}).into(store);
  CHECK(rejection_of(idle) == "learners makes no trainers: set workers::make");
}

TEST_CASE("nodes_of_another_graph_are_refused") {
  graph one;
  const auto model = one.add("model", servers{.tables = {table_of("w", 4)}});
  graph other;
  other.add("own", servers{.tables = {table_of("w", 4)}});
  other.add("learners", some_workers()).into(model);
  CHECK(rejection_of(other) == "learners leads to a node of another graph");
}

TEST_CASE("stages_stand_in_an_order_that_they_can_work_in") {
  const auto fp16 = compress{.pushes = {{"", {encoding::fp16, 0}}}};
  CHECK(rejection_with(unchanged("a"), unchanged("b"), no_op("c"), reduce{}, fp16).empty());
  CHECK(rejection_with(reduce{}, no_op("sums", {.takes_sums = true}), fp16).empty());
  CHECK(rejection_with(reduce{}, no_op("noise"))
        == "noise works on single batches and stands behind reducer, which adds them up: put it "
           "before, or declare traits::takes_sums");
  CHECK(rejection_with(fp16, reduce{})
        == "codec stands before reducer, which cannot add up packed gradients: put codec last");
  CHECK(rejection_with(fp16, no_op("noise"))
        == "codec stands before noise, which cannot read packed gradients: put codec last");
  CHECK(rejection_with(no_op("noise"), unchanged("clip"))
        == "clip changes gradients on the trainer's thread and stands behind noise: put it first");
  CHECK(rejection_with(map_push("clip", {})) == "clip has an empty function");
  CHECK(rejection_with(own_stage("noise", {}, {})) == "noise has an empty function");
  CHECK(rejection_with(raw_stage("noise", {}, {})) == "noise has an empty function");
  CHECK(rejection_with(stage_list{no_op("a"), reduce{}}, fp16).empty());
}

} // namespace graph_test
