// Tests how pipelines are lowered; line_part_test.cpp runs their parts.
#include "actors/graph/launch/member_plan.hpp"
#include "actors/graph/plan.hpp"
#include "tests/actors/tiny_training.hpp"

#include "doctest/doctest.h"

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace pipelines_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

struct no_part final : part {
  void forward(const micro_batch&, const_tensors, std::span<const float>, part_output&) override {}
  double backward(const micro_batch&, const_tensors, std::span<const float>, std::span<const float>,
                  mutable_tensors, std::span<float>) override {
    return 0;
  }
};

part_spec part_with(std::vector<std::string> tables) {
  return {std::move(tables), [] { return std::make_unique<no_part>(); }};
}

/// A program: three tables, and lines of these parts.
struct program_of_parts {
  run_options options;
  std::vector<table_spec> tables{table_of("w1", 40), table_of("w2", 30), table_of("w3", 20)};
  std::vector<part_spec> parts{part_with({"w1"}), part_with({"w3", "w2"})};
  stage_list path;

  graph described() const {
    graph g;
    auto model = g.add("model", options.store(tables));
    g.add("line", options.pipeline_of(100, parts)).into(path, model);
    return g;
  }
  result<plan> lowered() const { return lower("tiny", described(), options); }
  std::string rejection() const {
    const auto made = lowered();
    return made ? "" : made.error().text;
  }
};

std::string rejection_of(const std::function<void(program_of_parts&)>& change) {
  program_of_parts some;
  change(some);
  return some.rejection();
}

} // namespace

TEST_CASE("a line is a worker, actors and channels") {
  program_of_parts some;
  some.parts = {part_with({"w1"}), part_with({"w2"}), part_with({"w3"})};
  some.options.workers.count = 2;
  const auto made = some.lowered();
  REQUIRE_MESSAGE(made, made.error().text);
  CHECK(made->job.workers == 2);
  CHECK(made->job.actors == 4);
  REQUIRE(made->pipeline);
  CHECK(made->pipeline->tables[2] == std::vector<table_id>{{2}});
  const auto names = [&](const member_id& who) {
    std::vector<std::string> all;
    for (const auto& each : channels_of(*made, who))
      all.push_back((each.end.sends ? "to " : "from ") + to_string(process_of(each.end.peers.at(0)))
                    + " by " + each.end.channel);
    return all;
  };
  CHECK(names({role::worker, 1, {}})
        == std::vector<std::string>{"to actor 1 by line>line.1", "from actor 1 by line.1>line"});
  CHECK(names({role::actor, 1, {}})
        == std::vector<std::string>{"from worker 1 by line>line.1", "to worker 1 by line.1>line",
                                    "to actor 3 by line.1>line.2",
                                    "from actor 3 by line.2>line.1"});
}

TEST_CASE("a process of a line is named by line and part") {
  program_of_parts some;
  some.options.workers.count = 2;
  some.options.by_node = {{"--kill", "line", 2, 1s}, {"--kill", "line", 3, 2s}};
  const auto made = some.lowered();
  REQUIRE_MESSAGE(made, made.error().text);
  REQUIRE(made->options.kills.size() == 2);
  CHECK(to_string(made->options.kills[0].who) == "worker 1");
  CHECK(to_string(made->options.kills[1].who) == "actor 1");
  CHECK(rejection_of([](auto& x) {
          x.options.by_node = {{"--kill", "line", 8, 1s}};
        })
        == "--kill: line has no process 8, only 0 to 7: process I is line I / 2, part I % 2");
  CHECK(rejection_of([](auto& x) {
          x.options.by_node = {{"--slow", "line", 3, 5ms}};
        })
        == "--slow: line:3 is part 1 of its line: name the first part, line:2");
}

TEST_CASE("processes of a pipeline have the names that options give them") {
  program_of_parts some;
  some.options.workers.count = 2;
  const auto made = some.lowered();
  REQUIRE_MESSAGE(made, made.error().text);
  CHECK(names_in_options(*made)
        == std::map<std::string, std::string>{{"worker 0", "line:0"},
                                              {"actor 0", "line:1"},
                                              {"worker 1", "line:2"},
                                              {"actor 1", "line:3"}});
  const auto plans = member_plans_of(*made);
  CHECK(plans.of({role::worker, 1, {}}).node == "line:2");
  CHECK(plans.of({role::actor, 1, {}}).node == "line:3");
  CHECK(plans.of({role::server, 1, {}}).node == "model:1");
}

TEST_CASE("a graph of a pipeline is printed with its parts") {
  program_of_parts some;
  some.options.workers.count = 1;
  some.options.micro = {8, {.order = micro_order::fill_drain}};
  const auto made = some.lowered();
  REQUIRE_MESSAGE(made, made.error().text);
  CHECK(to_text(*made).starts_with(
    "line       pipeline of 2 parts x1, fill-drain, 8 micro-batches  => model\n"
    "part 0     w1; holds at most 8 of 8 micro-batches\n"
    "part 1     w3, w2; holds at most 8 of 8 micro-batches\n"
    "model "));
  const auto picture = to_dot(*made);
  CHECK(picture.find("line.1") == std::string::npos);
  CHECK(picture.find(R"(
  subgraph cluster_line {
    label="line\npipeline of 2 parts x1, fill-drain, 8 micro-batches";
    fontname="sans-serif";
    "part 0" [shape=box, label="part 0\nw1"];
    "part 1" [shape=box, label="part 1\nw3, w2"];
    "part 0" -> "part 1" [dir=both];
  }
)") != std::string::npos);
  CHECK(picture.ends_with(R"(
  "part 0" -> model [dir=both];
  "part 1" -> model [dir=both];
}
)"));
  some.path = {compress{}};
  const auto packed = to_dot(*some.lowered());
  CHECK(packed.find(R"(
  codec [shape=ellipse, label="codec"];
  "part 0" -> codec;
  "part 1" -> codec;
)") != std::string::npos);
  CHECK(packed.find("codec -> model [dir=both];") != std::string::npos);
}

TEST_CASE("parts need tables, and each table one part") {
  CHECK(rejection_of([](auto& x) { x.parts.pop_back(); })
        == "line has 1 part, and a pipeline has 2 to 64");
  CHECK(rejection_of([](auto& x) { x.parts[0].tables.clear(); })
        == "line: part 0 has no tables: give it one, or put its work into another part");
  CHECK(rejection_of([](auto& x) { x.parts[1].make = {}; })
        == "line: part 1 has no maker: set part_spec::make");
  CHECK(rejection_of([](auto& x) { x.parts[1].tables.push_back("w1"); })
        == "line: table 'w1' is in part 0 and in part 1: a table has one part");
  CHECK(rejection_of([](auto& x) { x.parts[1].tables.pop_back(); })
        == "line: table 'w2' is in no part: name it in one of them");
  CHECK(rejection_of([](auto& x) { x.parts[0].tables[0] = "w9"; })
        == "line: part 0 has the table 'w9', and model has no such table");
}

TEST_CASE("tables of a pipeline are dense, learn, and do not go by clocks") {
  const auto of_table = [](const std::function<void(table_spec&)>& change) {
    return rejection_of([&](auto& x) { change(x.tables[1]); });
  };
  CHECK(rejection_of([](auto& x) { x.options.sync = {consistency_mode::bsp}; })
        == "line is a pipeline, and table 'w1' is bsp, whose steps need all tables in one push: "
           "use asp or ssp");
  CHECK(rejection_of([](auto& x) { x.options.sync = {consistency_mode::ssp, 2}; }) == "");
  CHECK(of_table([](auto& x) { x.frozen = true; })
        == "line is a pipeline, and table 'w2' is frozen: leave it unfrozen, or keep it within the "
           "part");
  CHECK(of_table([](auto& x) { x = {.name = "w2", .kind = table_kind::sparse, .width = 4}; })
        == "line is a pipeline, and table 'w2' is sparse: make it dense");
  CHECK(of_table([](auto& x) { x.optimizer.clip_norm = 1; })
        == "line is a pipeline, and table 'w2' clips by norm, which is that of all parts: use "
           "--clip-value");
}

TEST_CASE("a pipeline refuses records, reducers and micro-batches that do not fit") {
  CHECK(rejection_of([](auto& x) { x.options.record_directory = "r"; })
        == "--record: line is a pipeline, whose parcels a replay does not have: leave the option "
           "out");
  CHECK(rejection_of([](auto& x) { x.path = {reduce{}}; })
        == "line is a pipeline, each line of which pushes by itself: leave the reducer out");
  CHECK(rejection_of([](auto& x) {
          x.options.micro.schedule = {micro_order::fill_drain, 1};
        })
        == "--pipeline-ahead: line has the order fill-drain, in which no part is ahead: use "
           "--pipeline-order 1f1b, or leave it out");
  CHECK(rejection_of([](auto& x) { x.options.micro.count = 65; })
        == "--micro-batches: line cuts a batch of 64 samples into 65: use --batch 65 or more");
}

TEST_CASE("a pipeline needs all of its parts, and no line is evicted") {
  program_of_parts some;
  graph g;
  auto model = g.add("model", some.options.store(some.tables));
  auto line = some.options.pipeline_of(100, some.parts);
  line.on_death.then = outcome::leave_out;
  g.add("line", line).into(model);
  const auto made = lower("tiny", g, some.options);
  REQUIRE_FALSE(made);
  CHECK(made.error().text
        == "line: a line needs all of its parts, so on_death.then must be fail_job");
  CHECK(some.lowered()->options.workers.stragglers == straggler_measure::warned);
}

TEST_CASE("lines that the program sets itself are no fields that they lack") {
  program_of_parts some;
  some.options.workers.count = 3;
  some.options.given = {"--workers"};
  graph g;
  auto model = g.add("model", some.options.store(some.tables));
  g.add("line", pipeline{.samples = 100, .parts = some.parts, .lines = 2}).into(model);
  const auto made = lower("tiny", g, some.options);
  REQUIRE_FALSE(made);
  CHECK(made.error().text
        == "--workers has no effect: this program sets the workers of line itself");
}

TEST_CASE("a measure against a slow line is a warning at most") {
  const auto with = [](std::optional<straggler_measure> asked) {
    return rejection_of([&](auto& x) {
      x.options.workers.stragglers = asked;
      x.options.given = {"--stragglers"};
    });
  };
  CHECK(with(straggler_measure::rebalanced)
        == "--stragglers has no effect: line is a pipeline, and the first part of a line cannot "
           "tell which part is slow: use --stragglers warn or off");
  CHECK(with(straggler_measure::warned) == "");
  CHECK(with(std::nullopt) == "");
}

TEST_CASE("options of workers that lines do not have are named as on the command line") {
  for (const std::string option :
       {"--pull-ahead", "--workers-per-process", "--backup-workers", "--delta-pulls"}) {
    CAPTURE(option);
    CHECK(rejection_of([&](auto& x) { x.options.given = {option}; })
          == option + " has no effect: line is a pipeline, and only workers have this option");
  }
}

TEST_CASE("a graph has one pipeline, or one node of workers") {
  program_of_parts some;
  graph g;
  auto model = g.add("model", some.options.store(some.tables));
  g.add("line", some.options.pipeline_of(100, some.parts)).into(model);
  g.add("other", some.options.pipeline_of(100, some.parts)).into(model);
  const auto made = lower("tiny", g, some.options);
  REQUIRE_FALSE(made);
  CHECK(made.error().text
        == "line and other are both workers: a graph has one node of workers, or one pipeline");
}

TEST_CASE("a pipeline needs servers") {
  const auto rejection = [](any_store what, const run_options& options) {
    graph g;
    auto model = g.add("model", std::move(what));
    g.add("line", options.pipeline_of(100, program_of_parts{}.parts)).into(model);
    const auto made = lower("tiny", g, options);
    return made ? "" : made.error().text;
  };
  const auto tables = program_of_parts{}.tables;
  const run_options options;
  const std::string begin = "line is a pipeline, whose parts push to servers, and model ";
  CHECK(rejection(options.gossip_of(tables, neighbours::ring(), mixing::pairwise), options)
        == begin + "is gossip, whose values are in its workers: use troupe::servers");
  CHECK(rejection(own_store{.tables = tables, .make = [] { return nullptr; }}, options)
        == begin + "is an own store, which is one server without replicas: use troupe::servers");
  CHECK(rejection(all_reduce{.tables = tables}, options)
        == begin + "is an all-reduce, without servers: use --sync asp or ssp");
  for (const auto mode : {run_mode::processes, run_mode::threads, run_mode::simulation}) {
    run_options asked;
    asked.asked_mode = mode;
    asked.sync = {consistency_mode::hogwild, 0};
    asked.given = {"--sync"};
    CHECK(rejection(asked.store(tables), asked)
          == begin + "is shared memory, without servers: use --sync asp or ssp");
  }
}

TEST_CASE("options of pipelines have no effect on workers") {
  run_options options;
  options.micro.count = 8;
  options.given = {"--micro-batches"};
  graph g;
  auto model = g.add("model", options.store({table_of("w", 40)}));
  g.add("learners", options.workers_of(100, trainers(to_three))).into(model);
  const auto made = lower("tiny", g, options);
  REQUIRE_FALSE(made);
  CHECK(made.error().text
        == "--micro-batches has no effect: learners has workers, and no parts of a model");
}

} // namespace pipelines_test
