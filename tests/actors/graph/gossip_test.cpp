#include "actors/graph/plan.hpp"
#include "actors/graph/run.hpp"
#include "tests/actors/tiny_training.hpp"
#include "tests/storage/temporary_directory.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gossip_test {

using namespace troupe;
using namespace troupe::test;

namespace {

struct experience {
  float reward = 0;
};
struct player : own_actor {
  out<experience> seen{"seen"};
  in<experience> heard{"heard"};
};

graph gossip_graph(const run_options& options, gossip store, stage_list path = {}) {
  graph g;
  auto model = g.add("peers", std::move(store));
  g.add("learners", options.workers_of(100, trainers(to_three))).into(std::move(path), model);
  return g;
}

/// Returns a graph of the command line's options, with one table.
graph graph_with(const run_options& options, neighbours with = neighbours::ring(),
                 mixing how = mixing::pairwise) {
  return gossip_graph(options, options.gossip_of({table_of("w", 40)}, std::move(with), how),
                      options.stages());
}

/// Returns the error of lowering; empty: there is none.
std::string rejection_of(const graph& described, const run_options& options = {}) {
  const auto made = lower("tiny", described, options);
  return made ? "" : made.error().text;
}

std::string rejection_of(std::uint32_t peers, neighbours with) {
  run_options options;
  options.workers.count = peers;
  return rejection_of(graph_with(options, std::move(with)), options);
}

/// Returns the error for a store whose table `change` has changed.
std::string rejection_of_table(const std::function<void(table_spec&)>& change) {
  auto table = table_of("w", 40);
  change(table);
  return rejection_of(gossip_graph({}, {.tables = {table}}));
}

std::string unparsed(const std::string& text) {
  const auto made = neighbours::parsed(text);
  REQUIRE_FALSE(made);
  CHECK(made.error().code == errc::invalid_argument);
  return made.error().text;
}

} // namespace

TEST_CASE("a plan has the graph of all workers, one collector, and says so at the start") {
  run_options options;
  options.workers.count = 6;
  options.servers.count = 3; // The default of the command line does not count.
  const auto made =
    lower("tiny", graph_with(options, neighbours::torus(), mixing::each_step), options);
  REQUIRE(made);
  CHECK(made->store == &rules_of_gossip);
  CHECK(made->job.gossip);
  CHECK(made->job.servers == 1);
  CHECK(made->job.replicas == 1);
  REQUIRE(made->peers);
  CHECK(made->peers->how == mixing::each_step);
  CHECK(made->peers->graph == *neighbour_graph::torus(2, 3));
  REQUIRE(made->notices.size() == 1);
  // Eigenvalues of a torus of 2 x 3: 1, 1/2, 1/4 twice and -1/4 twice.
  CHECK(made->notices[0].text == "peers: gossip, torus, each_step, spectral gap 0.500");
}

TEST_CASE("a graph of gossip is printed with its spectral gap and its promises") {
  run_options options;
  const auto text_of = [&](neighbours with, mixing how) {
    return to_text(*lower("tiny", graph_with(options, std::move(with), how), options));
  };
  CHECK(text_of(neighbours::ring(), mixing::pairwise)
        == "learners   workers x4               => peers\n"
           "peers      gossip, ring, pairwise, spectral gap 0.667  1 table, 40 floats\n"
           "exactly once: no   lost at one death: batches of the dead peer count partly\n"
           "simulate: yes   record and replay: no, peers keeps no order of pushes\n");
  CHECK(text_of(neighbours::torus(2, 2), mixing::each_step)
          .find("gossip, torus of 2 x 2, each_step, spectral gap 0.667")
        != std::string::npos);
  CHECK(text_of(neighbours::complete(), mixing::each_step).find("spectral gap 1.000")
        != std::string::npos);
  const auto dot = to_dot(*lower("tiny", graph_with(options, neighbours::exponential()), options));
  CHECK(dot.find("gossip, exponential, pairwise, spectral gap") != std::string::npos);
}

TEST_CASE("the fingerprint of a gossip job is that of a job with servers") {
  run_options options;
  const auto with_peers = lower("tiny", graph_with(options), options);
  graph g;
  auto model = g.add("model", options.store({table_of("w", 40)}));
  g.add("learners", options.workers_of(100, trainers(to_three))).into(options.stages(), model);
  const auto with_servers = lower("tiny", g, options);
  REQUIRE(with_peers);
  REQUIRE(with_servers);
  // The optimiser of the command line is in both.
  CHECK(fingerprint(with_peers->job) == fingerprint(with_servers->job));
  options.workers.count = 7;
  CHECK(fingerprint(lower("tiny", graph_with(options), options)->job)
        == fingerprint(with_servers->job));
}

TEST_CASE("options that gossip has no use for are refused in one line") {
  const auto why_not = [](const std::string& option) {
    run_options options;
    options.given = {option};
    return rejection_of(graph_with(options), options);
  };
  for (const std::string option : {"--servers", "--replicas", "--shards", "--durability",
                                   "--apply-batch", "--verify-replicas", "--reads"}) {
    CAPTURE(option);
    CHECK(why_not(option)
          == option + " has no effect: peers is gossip, whose values are in its workers");
  }
  const std::vector<std::pair<std::vector<std::string>, std::string>> others{
    {{"--sync"}, "whose workers mix as the graph says"},
    {{"--delta-pulls", "--push-memory", "--no-key-cache"}, "whose workers pull from themselves"},
    {{"--pull-ahead", "--backup-workers"}, "whose workers compute on their newest values"},
    {{"--workers-per-process"}, "which has a process for each worker"},
    {{"--record", "--replay"}, "which keeps no order of pushes"}};
  for (const auto& [options, why] : others)
    for (const auto& option : options) {
      CAPTURE(option);
      CHECK(why_not(option) == option + ": peers is gossip, " + why + ": leave the option out");
    }
  for (const std::string option :
       {"--lr", "--optimizer", "--workers", "--checkpoint", "--checkpoint-every", "--stragglers"}) {
    CAPTURE(option);
    CHECK(why_not(option).empty());
  }
}

TEST_CASE("values for neighbours may be packed, and gradients may not") {
  const auto why_not = [](compress how, std::set<std::string> given) {
    run_options options;
    options.codec = std::move(how);
    options.given = std::move(given);
    return rejection_of(graph_with(options), options);
  };
  CHECK(why_not({.pulls = encoding::fp16}, {"--compress-pulls"}).empty());
  const compress pushes{.pushes = {{"", {encoding::fp16, 0}}}};
  CHECK(why_not(pushes, {"--compress"})
        == "--compress: peers is gossip, whose gradients stay in their workers: leave the option "
           "out");
  CHECK(why_not(pushes, {}) // A program's own codec.
        == "a codec packs gradients, and those of peers stay in their workers: leave "
           "compress::pushes out");
}

TEST_CASE("another consistency is refused") {
  run_options options;
  options.given = {"--sync"};
  options.sync.mode = consistency_mode::bsp;
  CHECK(rejection_of(graph_with(options), options)
        == "--sync has no effect: peers is gossip, whose workers mix as the graph says");
  CHECK(rejection_of_table([](table_spec& table) {
          table.sync.mode = consistency_mode::ssp;
        }).starts_with("table 'w' is ssp"));
  CHECK(rejection_of_table([](table_spec& table) { table.sync.mode = consistency_mode::bsp; })
        == "table 'w' is bsp, and the tables of gossip are asp: leave sync out");
}

TEST_CASE("sparse and large tables are refused, and frozen ones are not") {
  CHECK(rejection_of_table([](table_spec& table) {
          table.kind = table_kind::sparse;
          table.shape.clear();
          table.width = 3;
        })
        == "table 'w' is sparse, and peers mix dense tables alone: use troupe::servers");
  CHECK(rejection_of_table([](table_spec& table) {
          table.shape = {std::uint64_t{1} << 27};
          table.optimizer.kind = optimizer_kind::adam;
        })
        == "peers has 1610 MB of values and optimiser state, and a gossip peer has at most 1 GiB");
  auto frozen = table_of("f", 40);
  frozen.frozen = true;
  CHECK(rejection_of(gossip_graph({}, {.tables = {table_of("w", 40), frozen}})).empty());
}

TEST_CASE("fields of workers and stages that peers lack are refused") {
  const auto why_not = [](const std::function<void(workers&)>& change, stage_list path = {}) {
    graph g;
    auto model = g.add("peers", gossip{.tables = {table_of("w", 40)}});
    workers some{.samples = 100, .make = trainers(to_three)};
    change(some);
    g.add("learners", some).into(std::move(path), model);
    return rejection_of(g);
  };
  const std::string own = "learners: a gossip peer has a process of its own, which pulls from "
                          "itself: leave per_process, backups, ahead and delta_pulls out";
  CHECK(why_not([](workers& some) { some.per_process = 2; }) == own);
  CHECK(why_not([](workers& some) { some.backups = 1; }) == own);
  CHECK(why_not([](workers& some) { some.ahead = 1; }) == own);
  CHECK(why_not([](workers& some) { some.delta_pulls = true; }) == own);
  CHECK(why_not([](workers&) {}, {reduce{}})
        == "a reducer adds up gradients for servers, and peers is gossip: leave it out");
  CHECK(why_not([](workers&) {}).empty());
}

TEST_CASE("actors and channels are refused") {
  graph g;
  auto model = g.add("peers", gossip{.tables = {table_of("w", 40)}});
  g.add("learners", workers{.samples = 100, .make = trainers(to_three)}).into(model);
  g.add("players", actors<player>{.count = 3});
  CHECK(rejection_of(g)
        == "peers is gossip, whose lanes carry copies: leave the actors and channels out");
}

TEST_CASE("a number of peers that its graph cannot have is refused") {
  CHECK(rejection_of(1, neighbours::ring()) == "gossip needs 2 workers or more, not 1");
  CHECK(rejection_of(7, neighbours::torus())
        == "a torus of 7 peers: 7 is no product of two numbers of 2 or more: use ring");
  CHECK(rejection_of(3, neighbours::torus(2, 2))
        == "a torus of 2 x 2 has 4 peers, and there are 3 workers: use --workers 4");
  for (const auto& with : {neighbours::ring(), neighbours::exponential(), neighbours::complete()})
    CHECK(rejection_of(2, with).empty());
}

TEST_CASE("the edges of a file are those of the graph, or are refused with the file's name") {
  const storage::temporary_directory folder;
  const auto path = (folder.path() / "edges").string();
  const auto with = [&](std::uint32_t peers, const std::string& text) {
    std::ofstream{path} << text;
    return rejection_of(peers, neighbours::file(path));
  };
  CHECK(with(3, "0 1\n1 2\n").empty());
  CHECK(with(3, "0 1\n1 0\n1 2\n") == path + ": asymmetric: 1 2 is there and 2 1 is not");
  CHECK(with(5, "0 1\n2 3\n3 4\n")
        == path + ": unconnected: no way leads from peer 2 to peers 0, 1");
  CHECK(with(3, "0 1\n1 2\n2 3\n")
        == path
             + ": the list has peers 0 to 3, which are 4, and there are 3 workers: both numbers "
               "have to be equal");
  CHECK(with(3, "0 1\n0 1\n1 2\n") == path + ": line 2: the edge 0 1 is there twice");
  CHECK(with(3, "0 1\n1 1\n") == path + ": line 2: an edge of peer 1 with itself");
  CHECK(rejection_of(3, neighbours::file(path + ".not")) == "cannot read " + path + ".not");

  std::ofstream{path} << "0 1\n1 2\n";
  run_options options;
  options.workers.count = 3;
  const auto made = lower("tiny", graph_with(options, neighbours::file(path)), options);
  REQUIRE(made);
  CHECK(made->peers->graph.neighbours_of[1] == std::vector<std::uint32_t>{0, 2});
  CHECK(made->files == std::vector<std::string>{path}); // Other hosts compare its checksum.
  CHECK(made->notices[0].text.starts_with("peers: gossip, the edges of " + path + ", pairwise"));
}

TEST_CASE("the words of the command line name the graphs") {
  CHECK(neighbours::parsed("ring")->text() == "ring");
  CHECK(neighbours::parsed("torus")->text() == "torus");
  CHECK(neighbours::parsed("torus:2x4")->text() == "torus of 2 x 4");
  CHECK(neighbours::parsed("exponential")->text() == "exponential");
  CHECK(neighbours::parsed("complete")->text() == "complete");
  CHECK(neighbours::parsed("file:a b")->text() == "the edges of a b");
  CHECK(neighbours::parsed("file:a b")->path() == "a b");
  for (const std::string bad :
       {"", "rings", "Ring", "file:", "torus:", "torus:2", "torus:2x", "torus:x2", "torus:2x4x",
        "torus:-2x4", "torus:2x99999999999", "torus:0x4", "torus:4x0"}) {
    CAPTURE(bad);
    CHECK(unparsed(bad)
          == "'" + bad
               + "' names no neighbour graph: use ring, torus, torus:RxC, exponential, "
                 "complete or file:PATH");
  }
}

TEST_CASE("the words of the command line name the ways of mixing") {
  for (const auto how : {mixing::each_step, mixing::pairwise})
    CHECK(*parse_mixing(to_string(how)) == how);
  const auto wrong = parse_mixing("each");
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().text == "'each' is no way of mixing: use each_step or pairwise");
}

namespace {

double counted(const batch& work, const_tensors parameters, mutable_tensors gradients) {
  work.notes.count("steps");
  return to_three(work, parameters, gradients);
}

/// Returns 25 batches an epoch for a store of two tables, one of several blocks.
graph counting_graph(const run_options& options, any_store store) {
  graph g;
  auto model = g.add("model", std::move(store));
  g.add("learners", options.workers_of(100, trainers(counted))).into(options.stages(), model);
  return g;
}

settings settings_of(run_mode mode, std::uint64_t epochs) {
  settings how;
  how.name = "tiny";
  how.options.asked_mode = mode;
  how.options.epochs = epochs;
  how.options.batch_samples = 4;
  how.options.workers.count = 3;
  how.options.optimizer.kind = optimizer_kind::adam;
  how.options.optimizer.learning_rate = 0.2f;
  return how;
}

any_store store_of(bool is_gossip, const run_options& options, mixing how = mixing::pairwise) {
  const std::vector<table_spec> tables{table_of("w", 9000), table_of("bias", 5)};
  if (is_gossip)
    return options.gossip_of(tables, neighbours::ring(), how);
  return options.store(tables);
}

} // namespace

TEST_CASE("peers train in threads and in virtual time, with both ways of mixing") {
  for (const auto mode : {run_mode::threads, run_mode::simulation})
    for (const auto mixing : {mixing::each_step, mixing::pairwise}) {
      CAPTURE(to_string(mixing));
      auto how = settings_of(mode, 20);
      std::vector<std::string> lines;
      how.log = [&](log_level, const std::string& line) { lines.push_back(line); };
      const auto done = run(counting_graph(how.options, store_of(true, how.options, mixing)), how);
      REQUIRE(done);
      CHECK(done->epochs == 20);
      CHECK(std::ranges::count(lines, "all 500 batches are applied") == 1);
      CHECK(done->counts.at("learners.steps") >= 500);
      REQUIRE(done->values.at("w").size() == 9000);
      CHECK(done->values.at("w")[8999] == doctest::Approx(3).epsilon(0.3));
    }
}

TEST_CASE("a checkpoint of peers is one of servers, and goes both ways") {
  for (const bool is_gossip_first : {true, false}) {
    CAPTURE(is_gossip_first);
    const storage::temporary_directory folder;
    const auto run_with = [&](bool is_gossip, std::uint64_t epochs, bool resumes) {
      auto how = settings_of(run_mode::threads, epochs);
      how.options.checkpoint_directory = (folder.path() / "state").string();
      how.options.resume = resumes;
      auto done = run(counting_graph(how.options, store_of(is_gossip, how.options)), how);
      if (!done)
        FAIL(done.error().text);
      return *std::move(done);
    };
    const auto steps_of = [](const report& done) {
      const auto found = done.counts.find("learners.steps");
      return found == done.counts.end() ? 0u : found->second;
    };
    const auto first = run_with(is_gossip_first, 2, false);
    CHECK(steps_of(first) >= 50);
    const auto same = run_with(!is_gossip_first, 2, true); // No batch is left.
    CHECK(steps_of(same) == 0);
    CHECK(same.values == first.values);
    const auto longer = run_with(!is_gossip_first, 3, true);
    CHECK(steps_of(longer) >= 25);
    CHECK(steps_of(longer) < 50);
    CHECK(longer.values != first.values);
    const auto back = run_with(is_gossip_first, 3, true);
    CHECK(back.values == longer.values);
  }
}

} // namespace gossip_test
