#include "actors/graph/plan.hpp"

#include "actors/protocol/worker/stage.hpp"
#include "actors/graph/nodes/raw_stage.hpp"
#include "tests/actors/tiny_training.hpp"

#include "doctest/doctest.h"
#include "fmt/format.h"

#include <chrono>
#include <cstddef>
#include <limits>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace plan_test {

using namespace troupe;
using namespace troupe::test;

TEST_CASE("who_joins_is_told_which_of_its_options_do_not_count") {
  job_spec mine;
  mine.epochs = 10;
  mine.tables.resize(1);
  mine.tables.front().name = "w";
  mine.tables.front().shape = {4};
  auto theirs = mine;
  run_options options;
  options.given = {"--epochs", "--lr"};
  CHECK(overruled(options, mine, theirs).empty());
  theirs.epochs = 3;
  theirs.tables.front().sync = {consistency_mode::bsp, 0}; // This option was not given here.
  CHECK(overruled(options, mine, theirs)
        == "using the main host's --epochs 3; this host's value is ignored");
  options.given = {};
  CHECK(overruled(options, mine, theirs).empty());
  options.given = {"--epochs", "--sync"};
  CHECK(overruled(options, mine, theirs)
          .starts_with("using the main host's --epochs 3, --sync bsp; this"));
}

namespace {

/// Returns the error of lowering a graph with the words of a command line; empty: there is none.
std::string rejection_of(const graph& described, run_options options,
                         std::set<std::string> given = {}) {
  options.given = std::move(given);
  const auto made = lower("tiny", described, options);
  return made ? "" : made.error().text;
}

/// Returns a graph whose program chooses its own store.
graph graph_of(any_store store, const run_options& options, stage_list path = {}) {
  graph g;
  auto model = g.add("model", std::move(store));
  g.add("learners", options.workers_of(100, trainers(to_three))).into(std::move(path), model);
  return g;
}

stage no_op(traits what) {
  return own_stage("noise", what, [] { return std::make_unique<pass_through>(); });
}

} // namespace

TEST_CASE("a_plan_is_made_from_graph_and_command_line") {
  run_options options;
  options.workers.count = 3;
  options.epochs = 4;
  options.batch_samples = 8;
  options.seed = 5;
  options.partitions = 16;
  const auto g = tiny_graph(options, 100, to_three);
  const auto made = lower("tiny", g, options);
  REQUIRE(made);
  CHECK(made->job.name == "tiny");
  CHECK(made->job.workers == 3);
  CHECK(made->job.servers == 2);
  CHECK(made->job.epochs == 4);
  CHECK(made->job.batches_per_epoch() == 13);
  CHECK(made->job.tables == g.stores().front().what.tables());
  auto other = g;
  other.dataset_id("labels 17");
  CHECK(lower("tiny", other, options)->job.name == "tiny on labels 17");
  CHECK(fingerprint(lower("tiny", other, options)->job) != fingerprint(made->job));
  options.sync.mode = consistency_mode::hogwild;
  CHECK(tiny_plan(options, 100, to_three).job.servers == 1);
  CHECK(tiny_plan(options, 100, to_three).store == &rules_of_shared_memory);
}

TEST_CASE("fields_that_a_program_sets_take_the_place_of_the_command_lines") {
  run_options options;
  const auto g =
    graph_of(servers{.tables = {table_of("w", 4)}, .count = 3, .replicas = 3}, options);
  const auto made = lower("tiny", g, options);
  REQUIRE(made);
  CHECK(made->job.servers == 3);
  CHECK(made->job.replicas == 3);
  CHECK(made->options.servers.replicas == 3);
  CHECK(rejection_of(g, options, {"--replicas"}) // 1 is the default, and it was asked for.
        == "--replicas has no effect: this program sets the servers of model itself");
  options.servers.replicas = 3;
  CHECK(rejection_of(g, options, {"--replicas"}).empty());
  options.optimizer.learning_rate = 0.5f;
  CHECK(rejection_of(g, options, {"--lr"})
        == "--lr has no effect: this program sets it for the tables of model itself");
}

TEST_CASE("each_kind_of_store_has_rules_at_its_place") {
  const auto all = all_store_rules();
  for (std::size_t i = 0; i < all.size(); ++i) {
    CAPTURE(i);
    CHECK(all[i]->kind == static_cast<store_kind>(i));
    CHECK((all[i]->refused.empty() || all[i]->make)); // No option chooses it.
  }
}

namespace {

struct no_keeper final : keeper {
  void apply(const update&, const node_notes&) override {}
  void read(const query&, mutable_tensors) override {}
  std::vector<std::byte> save() const override { return {}; }
  void load(std::span<const std::byte>) override {}
};

own_store kept(std::vector<table_spec> tables) {
  return {.tables = std::move(tables), .make = [] { return std::make_unique<no_keeper>(); }};
}

} // namespace

TEST_CASE("an_own_store_is_one_server_of_one_partition") {
  run_options options;
  options.servers.count = 3; // The default of the command line does not count.
  const auto g = graph_of(kept({table_of("w", 4)}), options);
  const auto made = lower("tiny", g, options);
  REQUIRE(made);
  CHECK(made->job.own_store);
  CHECK(made->job.servers == 1);
  CHECK(made->job.partitions == 1);
  CHECK(made->make_keeper);
  CHECK(to_text(*made)
        == "learners   workers x4               => model\n"
           "model      own store                1 table, 4 floats, asp\n"
           "exactly once: yes   lost at one death: updates since the newest checkpoint, which are "
           "computed again\nsimulate: yes   record and replay: no, model has a keeper\n");
  auto other = made->job;
  other.own_store = false;
  CHECK(fingerprint(made->job) != fingerprint(other));
}

TEST_CASE("an_own_store_refuses_what_needs_servers_or_steps") {
  run_options options;
  const auto g = graph_of(kept({table_of("w", 4)}), options);
  CHECK(rejection_of(g, options, {"--replicas"})
        == "--replicas has no effect: model is an own store, which is one server without replicas");
  for (const std::string option : {"--lr", "--optimizer", "--momentum", "--staleness-lr"})
    CHECK(rejection_of(g, options, {option})
          == option
               + " has no effect: model is an own store, whose keeper takes the steps, without an "
                 "optimizer");
  CHECK(rejection_of(g, options, {"--sync"}).empty());
  options.sync.mode = consistency_mode::bsp;
  CHECK(rejection_of(g, options, {"--sync"})
        == "--sync has no effect: model is an own store, whose keeper takes each push by itself "
           "(asp)");
  options.record_directory = "r";
  CHECK(rejection_of(g, options)
        == "--record: model is an own store, and a replay has no keeper: leave the option out");
  options = {};
  options.partitions = 16;
  CHECK(rejection_of(g, options, {"--partitions"})
        == "--partitions: model is an own store, which is one partition: leave the option out");
  options = {};
  auto bsp = table_of("w", 4);
  bsp.sync.mode = consistency_mode::bsp;
  CHECK(rejection_of(graph_of(kept({bsp}), options), options)
        == "table 'w': the tables of an own store are asp, not bsp");
  auto adam = table_of("w", 4);
  adam.optimizer.kind = optimizer_kind::adam;
  CHECK(rejection_of(graph_of(kept({adam}), options), options)
        == "table 'w' has an optimizer, and the keeper of model applies its pushes: leave the "
           "optimizer out");
  auto sums = kept({table_of("w", 4)});
  CHECK(rejection_of(graph_of(sums, options, {reduce{}}), options)
        == "a reducer adds up gradients, and the keeper of model takes no sums: leave the reducer "
           "(--workers-per-process) out, or set own_store::takes_sums");
  sums.takes_sums = true;
  CHECK(rejection_of(graph_of(sums, options, {reduce{}}), options).empty());
  CHECK(rejection_of(graph_of(own_store{.tables = {table_of("w", 4)}}, options), options)
        == "model makes no keeper: set own_store::make");
}

TEST_CASE("faults_have_shares_and_a_delay") {
  run_options options;
  const auto rejection = [&](faults what) {
    return rejection_of(graph_of(servers{.tables = {table_of("w", 4)}}, options, {what}), options);
  };
  const auto nan = std::numeric_limits<double>::quiet_NaN();
  const auto wrong = "faults: shares are from 0 to below 1, and the delay is at most 5 s";
  CHECK(rejection({.lost = 0.5, .repeated = 0.5, .delay = std::chrono::seconds{5}}).empty());
  CHECK(rejection({.lost = 1}) == wrong);
  CHECK(rejection({.repeated = -0.1}) == wrong);
  CHECK(rejection({.lost = nan}) == wrong);
  CHECK(rejection({.delay = std::chrono::seconds{6}}) == wrong);
}

TEST_CASE("tables_of_different_consistency_are_checked_as_the_strictest") {
  const auto mixed = [](consistency_mode first, consistency_mode second) {
    servers store{.tables = {table_of("w", 4), table_of("b", 4)}};
    store.tables[0].sync = {first, 0};
    store.tables[1].sync = {second, 0};
    return store;
  };
  using enum consistency_mode;
  for (const auto& store : {mixed(asp, bsp), mixed(bsp, asp), mixed(ssp, bsp)}) {
    run_options options;
    options.workers.ahead = 1;
    CHECK(rejection_of(graph_of(store, options), options)
          == "--sync bsp waits for other workers: leave out --pull-ahead");
    options.workers.ahead = 0;
    options.workers.backups = 1;
    const auto made = lower("tiny", graph_of(store, options), options);
    REQUIRE(made);
    CHECK(to_text(*made).find("record and replay: no, some tables are bsp and others are not")
          != std::string::npos);
    options.record_directory = "r";
    CHECK(rejection_of(graph_of(store, options), options)
          == "--record knows jobs of which all tables are bsp, or none: leave it out");
  }
  run_options options;
  options.workers.ahead = 1;
  CHECK(rejection_of(graph_of(mixed(asp, ssp), options), options)
        == "--sync ssp:0 waits for other workers: leave out --pull-ahead");
}

TEST_CASE("an_all_reduce_refuses_what_it_cannot_have") {
  run_options options;
  all_reduce store{.tables = {table_of("w", 4)}};
  CHECK(rejection_of(graph_of(store, options), options).empty());
  for (auto* const field : {&options.workers.per_process, &options.workers.backups}) {
    const auto before = std::exchange(*field, 2);
    CHECK(rejection_of(graph_of(store, options), options)
          == "learners: an all-reduce has a process for each worker, which pulls nothing: leave "
             "per_process, backups and delta_pulls out");
    *field = before;
  }
  store.tables.push_back({.name = "rows", .kind = table_kind::sparse, .width = 2});
  CHECK(
    rejection_of(graph_of(store, options), options)
    == "--sync allreduce sends whole gradients, and table 'rows' is sparse: use --sync bsp with "
       "servers");
}

TEST_CASE("a_reducer_and_a_codec_have_ranges") {
  run_options options;
  const auto rejection = [&](stage_list path) {
    return rejection_of(graph_of(servers{.tables = {table_of("w", 4)}}, options, std::move(path)),
                        options);
  };
  CHECK(rejection({reduce{.wait = std::chrono::seconds{5}}}).empty());
  for (const int milliseconds : {-1, 5001})
    CHECK(
      rejection({reduce{.wait = std::chrono::milliseconds{milliseconds}}})
      == fmt::format("learners: reduce::wait is {}, which is not from 0 to 5000", milliseconds));
  CHECK(rejection({compress{.pulls = encoding::int8}}).empty());
  CHECK(rejection({compress{.pulls = encoding::topk}})
        == "learners: compress::pulls is topk, which cannot have whole values: use f32, fp16, bf16 "
           "or int8");
  for (const double share : {0.0, -1.0, 1.5})
    CHECK(
      rejection({compress{.pushes = {{"", {encoding::topk, share}}}}})
      == fmt::format("learners: compress::pushes has topk:{}, which sends a share of the elements "
                     "that is not above 0 and at most 1",
                     share));
  CHECK(rejection({compress{.pushes = {{"", {encoding::topk, 1.0}}}}}).empty());
}

TEST_CASE("a_maker_that_makes_no_trainer_gives_none_behind_push_functions_and_local_steps") {
  run_options options;
  graph g;
  auto model = g.add("model", options.store({table_of("w", 4)}));
  const trainer_maker none = [] { return std::unique_ptr<trainer>{}; };
  auto learners = g.add("learners", options.workers_of(100, local_steps(none, {.steps = 2})));
  learners.into(map_push("noise", [](const push_info&, mutable_tensors) {}), model);
  const auto made = lower("tiny", g, options);
  REQUIRE(made);
  CHECK(trainer_of(*made, made->job, 0)() == nullptr);
}

TEST_CASE("options_name_processes_by_their_nodes") {
  run_options options;
  options.servers.count = 2;
  options.listen = endpoint{"127.0.0.1", 4000};
  options.by_node = {{"--here", "learners", 1, {}},
                     {"--here", "model", 0, {}},
                     {"--kill", "model", 1, std::chrono::seconds{3}},
                     {"--slow", "learners", 0, std::chrono::milliseconds{16}}};
  const auto g = graph_of(options.store({table_of("w", 4)}), options);
  const auto made = lower("tiny", g, options);
  REQUIRE(made);
  CHECK(made->options.here == std::vector<process_name>{{role::worker, 1}, {role::server, 0}});
  REQUIRE(made->options.kills.size() == 1);
  CHECK(made->options.kills[0].who == process_name{role::server, 1});
  CHECK(made->options.slow_workers.at(0) == std::chrono::milliseconds{16});
  CHECK(node_roles_of(*made) == node_roles{{"learners", "worker"}, {"model", "server"}});

  options.by_node = {{"--kill", "learner", 1, {}}};
  CHECK(rejection_of(g, options)
        == "--kill: tiny has no processes of the name 'learner': name learners or model");
  options.by_node = {{"--slow", "model", 1, {}}};
  CHECK(rejection_of(g, options)
        == "--slow: tiny has no processes of the name 'model': name learners");
  options.by_node = {{"--kill", "learners", 9, {}}};
  CHECK(rejection_of(g, options) == "--kill: the job has only workers 0 to 3 and servers 0 to 1");
}

TEST_CASE("supervision_has_ranges_and_leaves_out_workers_only") {
  run_options options;
  servers model{.tables = {table_of("w", 4)}};
  model.on_death.then = outcome::leave_out;
  CHECK(rejection_of(graph_of(model, options), options)
        == "model: a job cannot go on without a part of its tables, so on_death.then must be "
           "fail_job");
  model.on_death = {.crashes_max = 0};
  CHECK(rejection_of(graph_of(model, options), options)
        == "model: supervision::crashes_max is 0, which is not from 1 to 1000");
  model.on_death = {.window = std::chrono::seconds{-1}};
  CHECK(rejection_of(graph_of(model, options), options)
        == "model: supervision::window is -1, which is not from 1 to 1000000");
  options.workers.on_death.then = outcome::leave_out;
  CHECK(rejection_of(graph_of(servers{.tables = {table_of("w", 4)}}, options), options).empty());
  CHECK(rejection_of(graph_of(all_reduce{{table_of("w", 4)}}, options), options)
        == "learners: an all-reduce waits for all workers, so on_death.then must be fail_job");
}

TEST_CASE("a_table_names_a_function_of_the_program") {
  run_options options;
  auto table = table_of("w", 4);
  table.optimizer = {
    .kind = optimizer_kind::user, .function = "fedbuff/1", .parameters = {8, 0.7f}};
  const auto g = graph_of(servers{.tables = {table}}, options);
  CHECK(rejection_of(g, options)
        == "table 'w' names the function 'fedbuff/1', which this program does not have: call "
           "program.function");
  const function_spec none{[](const step_info&, std::span<float>, std::span<float>,
                              std::span<const float>) { return true; },
                           3};
  const auto lowered = [&](const graph& described) {
    return lower("tiny", described, options, {{"fedbuff/1", none}});
  };
  const auto made = lowered(g);
  REQUIRE(made);
  CHECK(made->job.tables.front().optimizer.function_state == 3);
  for (const auto* const option : {"--optimizer", "--momentum", "--clip-value", "--lr"}) {
    options.given = {option};
    options.optimizer.learning_rate = 0.3f;
    const auto refused = lowered(g);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().text
          == std::string{option}
               + " has no effect: this program sets it for the tables of model itself");
  }
  options.given = {};
  const auto gathers = lowered(graph_of(servers{.tables = {table}, .apply_batch = 4}, options));
  REQUIRE_FALSE(gathers);
  CHECK(gathers.error().text
        == "table 'w' has a function, which gets each push by itself: leave out --apply-batch, and "
           "servers::apply_batch");
  CHECK_FALSE(lowered(graph_of(shared_memory{{table}}, options)));
}

TEST_CASE("fields_that_a_program_sets_are_in_their_ranges") {
  run_options options;
  const auto with = [&](servers store, std::uint32_t per_process) {
    auto own = options;
    own.workers.per_process = per_process;
    store.tables.push_back(table_of("w", 4));
    return rejection_of(graph_of(std::move(store), own), options);
  };
  CHECK(with({}, 1).empty());
  CHECK(with({}, 0) == "learners: workers::per_process is 0, which is not from 1 to 32");
  CHECK(with({.count = 0}, 1) == "model: servers::count is 0, which is not from 1 to 256");
  CHECK(with({.verify_replicas = 2'000'000'000}, 1)
        == "model: servers::verify_replicas is 2000000000, which is not from 0 to 1000000000");
  CHECK(with({.checkpoints = {.clocks = 2'000'000'000}}, 1)
        == "model: checkpoint_options::interval has 2000000000 clocks, which is not from 0 to "
           "1000000000");
  CHECK(with({.apply_batch = 0}, 1)
        == "model: servers::apply_batch is 0, which is not from 1 to 1024");
  CHECK(with({.checkpoints = {.interval = std::chrono::milliseconds{-5}}}, 1)
        == "model: checkpoint_options::interval is -5, which is not from 0 to 60000000000000");
  for (const double scale : {0.0, 0.5, 21.0, std::numeric_limits<double>::quiet_NaN()}) {
    options.workers.straggler_time_scale = scale;
    CHECK(with({}, 1)
          == fmt::format("learners: workers::straggler_time_scale is {}, which is not from 1 to 20",
                         scale));
  }
  options.workers.straggler_time_scale = 1;
  auto shared = table_of("v", 4);
  shared.sync.mode = consistency_mode::hogwild;
  CHECK(with({.tables = {shared}}, 1)
        == "model is made of servers, and its table 'v' is hogwild: use troupe::shared_memory");
}

TEST_CASE("an_option_whose_holder_the_graph_lacks_has_no_effect") {
  run_options options;
  const auto shared = graph_of(shared_memory{{table_of("w", 4)}}, options);
  CHECK(rejection_of(shared, options).empty());
  CHECK(rejection_of(shared, options, {"--durability"})
        == "--durability has no effect: model is shared memory, without servers");
  CHECK(rejection_of(shared, options, {"--checkpoint-keep"})
        == "--checkpoint-keep has no effect: model is shared memory, without checkpoints");
  options.chosen_store = &rules_of_all_reduce;
  CHECK(rejection_of(graph_of(options.store({table_of("w", 4)}), options), options,
                     {"--checkpoint-every", "--checkpoint-keep"})
          .empty());
  options.chosen_store = &rules_of_servers;
  const auto plain = graph_of(options.store({table_of("w", 4)}), options);
  CHECK(
    rejection_of(plain, options, {"--reduce-wait"})
      .starts_with("--reduce-wait has no effect: no reducer adds up the gradients of learners"));
  options.codec.pushes[""] = {encoding::fp16, 0};
  CHECK(rejection_of(plain, options, {"--compress"})
        == "--compress has no effect: the program puts no codec behind learners");
  CHECK(rejection_of(graph_of(options.store({table_of("w", 4)}), options, options.stages()),
                     options, {"--compress"})
          .empty());
}

TEST_CASE("a_limit_of_pushes_needs_tables_that_are_not_bsp") {
  run_options options;
  for (const std::string mode : {"asp", "ssp:2", "bsp"}) {
    CAPTURE(mode);
    options.sync = *parse_consistency(mode);
    const auto g = graph_of(options.store({table_of("w", 4)}), options);
    CHECK(rejection_of(g, options, {"--push-memory"})
          == (mode == "bsp" ? "--push-memory has no effect: model goes by clocks (bsp), and pushes "
                              "of a clock wait for each other, so no limit holds them back"
                            : ""));
  }
}

TEST_CASE("a_rate_for_stale_steps_needs_tables_with_such_steps") {
  run_options options;
  options.optimizer.full_rate_staleness = 2;
  options.given = {"--staleness-lr"};
  const auto asp = graph_of(options.store({table_of("w", 4)}), options);
  CHECK(rejection_of(asp, options, {"--staleness-lr"}).empty());
  auto own = options.store({table_of("w", 4)});
  own.tables().front().optimizer = {.learning_rate = 1};
  CHECK(rejection_of(graph_of(std::move(own), options), options, {"--staleness-lr"})
        == "--staleness-lr has no effect: this program sets it for the tables of model itself");
  const auto hogwild = graph_of(shared_memory{{table_of("w", 4)}}, options);
  CHECK(rejection_of(hogwild, options, {"--staleness-lr"})
        == "--staleness-lr has no effect: the tables of model are hogwild, whose steps have no "
           "staleness");
  options.sync = {consistency_mode::bsp, 0};
  const auto bsp = graph_of(options.store({table_of("w", 4)}), options);
  CHECK(rejection_of(bsp, options, {"--staleness-lr"})
        == "--staleness-lr has no effect: the tables of model are bsp, whose steps have no "
           "staleness");
}

TEST_CASE("stages_fit_the_store_and_the_record") {
  run_options options;
  const auto tables = std::vector{table_of("w", 4)};
  CHECK(rejection_of(graph_of(shared_memory{tables}, options, {no_op({})}), options)
        == "noise changes requests, and model gets none, as it is no store of servers: leave noise "
           "out");
  options.record_directory = "d";
  CHECK(rejection_of(graph_of(servers{.tables = tables}, options, {no_op({.pure = true})}), options)
          .empty());
  CHECK(rejection_of(graph_of(servers{.tables = tables}, options, {no_op({})}), options)
        == "--record: noise may keep a state, which a replay cannot have: declare it pure, or "
           "leave the option out");
  const auto raw =
    raw_stage("noise", {.pure = true},
              [](caf::actor_system&, const kv& next, const stage_notes&) { return next; });
  CHECK(rejection_of(graph_of(servers{.tables = tables}, options, {raw}), options)
        == "--record: noise is an actor, which a replay does not have: use an own_stage, or leave "
           "the option out");
}

namespace {

/// Returns the error of a graph whose workers take local steps; empty: there is none.
std::string rejection_of_steps(const local_step_options& local, const run_options& options,
                               const table_spec& table = table_of("w", 4)) {
  graph g;
  auto model = g.add("model", options.store({table}));
  g.add("learners", options.workers_of(100, local_steps(trainers(to_three), local))).into(model);
  return rejection_of(g, options);
}

} // namespace

TEST_CASE("local_steps_fit_the_tables_the_batch_and_the_record") {
  run_options options;
  options.batch_samples = 64;
  CHECK(rejection_of_steps({.steps = 64}, options).empty());
  CHECK(rejection_of_steps({.steps = 65}, options)
        == "learners takes 65 local steps, and a batch has 64 samples: raise --batch");
  CHECK(rejection_of_steps({.steps = 0}, options)
        == "learners: local_step_options::steps is 0, which is not from 1 to 1000000");
  CHECK(rejection_of_steps({.optimizer = {.learning_rate = -1}}, options)
        == "learners: the optimizer of its local steps: learning_rate must be a finite number > 0");
  CHECK(rejection_of_steps({.optimizer = {.full_rate_staleness = 4}}, options)
        == "learners: local steps have no staleness, so full_rate_staleness must be 0");
  table_spec rows;
  rows.name = "rows";
  rows.kind = table_kind::sparse;
  rows.width = 2;
  CHECK(rejection_of_steps({}, options, rows)
        == "learners takes local steps, and table 'rows' is sparse: make it dense, or leave the "
           "local steps out");
  CHECK(rejection_of_steps({.keep = true}, options).empty());
  options.record_directory = "d";
  CHECK(rejection_of_steps({}, options).empty());
  CHECK(rejection_of_steps({.keep = true}, options)
        == "--record: learners keeps the state of its local steps, which a replay cannot have: set "
           "keep to false, or leave the option out");
}

TEST_CASE("a_plan_shows_local_steps") {
  run_options options;
  graph g;
  auto model = g.add("model", options.store({table_of("w", 4)}));
  auto make = local_steps(trainers(to_three), {.steps = 10, .keep = true});
  g.add("learners", options.workers_of(100, make)).into(model);
  const auto made = lower("tiny", g, options);
  REQUIRE(made);
  CHECK(to_text(*made).find("workers x4, 10 local steps") != std::string::npos);
  CHECK(to_text(*made).find("replay: no, learners keeps the state of its local steps")
        != std::string::npos);
}

TEST_CASE("a_trainer_takes_local_steps_of_the_jobs_batches_before_its_push_functions") {
  run_options options;
  options.batch_samples = 64;
  std::size_t steps = 0;
  const auto counted = [&](const batch& work, const_tensors x, mutable_tensors gradients) {
    ++steps;
    return constant_gradient(1.0f)(work, x, gradients);
  };
  graph g;
  auto model = g.add("model", options.store({table_of("w", 4)}));
  const local_step_options local{.steps = 4, .optimizer = {.learning_rate = 1.0f}};
  auto learners = g.add("learners", options.workers_of(100, local_steps(trainers(counted), local)));
  learners.into(map_push("halve",
                         [](const push_info&, mutable_tensors gradients) {
                           for (float& x : gradients[0])
                             x /= 2;
                         }),
                model);
  const auto made = lower("tiny", g, options);
  REQUIRE(made);
  auto job = made->job;
  job.batch_samples = 8; // That of a record.
  const auto model_of_worker = trainer_of(*made, job, 0)();
  const std::vector<std::uint32_t> samples(8);
  std::vector<float> values(4), gradient(4);
  batch work;
  work.samples = samples;
  const std::vector<std::span<const float>> read{values};
  const std::vector<std::span<float>> write{gradient};
  model_of_worker->gradient(work, read, write);
  CHECK(steps == 4);
  CHECK(gradient == std::vector<float>(4, 2.0f));
}

TEST_CASE("a_plan_says_what_it_promises") {
  run_options options;
  options.optimizer.full_rate_staleness = 4;
  options.servers.replicas = 2;
  options.codec.pushes[""] = {encoding::topk, 0.01};
  graph g;
  auto model = g.add("model", options.store({table_of("w", 203'000), table_of("b", 530)}));
  auto learners = g.add("learners", options.workers_of(100, trainers(to_three)));
  learners.into(map_push("privacy", [](const push_info&, mutable_tensors) {}), options.stages(),
                model);
  const auto made = lower("tiny", g, options);
  REQUIRE(made);
  CHECK(to_text(*made)
        == "learners   workers x4               -> privacy -> codec(topk:0.01) => model\n"
           "model      servers x2, 2 replicas   2 tables, 203,530 floats, asp, full rate to "
           "staleness 4\n"
           "exactly once: yes   lost at one death: nothing\n"
           "simulate: yes   record and replay: no, the codec changes values on their way\n");
  CHECK(to_dot(*made).find("privacy -> codec;") != std::string::npos);
}

TEST_CASE("push_functions_change_gradients_on_the_trainers_thread") {
  run_options options;
  std::vector<std::uint64_t> seeds;
  graph g;
  auto model = g.add("model", options.store({table_of("w", 2)}));
  auto learners = g.add("learners", options.workers_of(100, trainers(constant_gradient(2))));
  const auto doubled = [&](const push_info& push, mutable_tensors gradient) {
    seeds.push_back(push.seed);
    CHECK(push.samples == 3);
    for (const auto table : gradient)
      for (float& x : table)
        x *= 2;
  };
  const auto plus_one = [&](const push_info& push, mutable_tensors gradient) {
    seeds.push_back(push.seed);
    gradient[0][1] += 1;
  };
  learners.into(map_push("doubled", doubled), map_push("plus_one", plus_one), model);
  const auto made = lower("tiny", g, options);
  REQUIRE(made);
  const auto trainer = trainer_of(*made, made->job, 1)();
  std::vector<float> values(2), gradient(2);
  const std::vector<std::uint32_t> samples{1, 2, 3};
  const std::span<const float> in{values};
  const std::span<float> out{gradient};
  batch work{.id = {7}, .samples = samples, .seed = 5};
  work.on_ready = [](std::size_t) { FAIL("a table left before the functions saw it"); };
  trainer->gradient(work, {&in, 1}, {&out, 1});
  CHECK(gradient == std::vector{4.0f, 5.0f});
  REQUIRE(seeds.size() == 2);
  CHECK(seeds[0] != seeds[1]);
  trainer->gradient(work, {&in, 1}, {&out, 1});
  CHECK(seeds[2] == seeds[0]); // A batch that is computed again draws the same numbers.
}

TEST_CASE("a_worker_with_other_data_is_told_that_the_data_differ") {
  run_options options;
  auto g = tiny_graph(options, 100, to_three);
  g.dataset_id("data 17");
  const auto theirs = lower("tiny", g, options)->job;
  CHECK(graph_difference(theirs, theirs).empty());
  g.dataset_id("data 18");
  CHECK(graph_difference(theirs, lower("tiny", g, options)->job)
        == "this process's graph belongs to another data set: it is "
           "'data 17' there and 'data 18' here: the files, or the options that read them, differ");
  g.dataset_id("data 17");
  options.seed = 99;
  CHECK(graph_difference(theirs, lower("tiny", g, options)->job)
          .ends_with("another job: the seed is 1 there and 99 here"));
}

TEST_CASE("a_process_whose_graph_has_another_number_of_actors_is_told_so") {
  job_spec theirs = lower("tiny", tiny_graph({}, 100, to_three), {})->job, mine = theirs;
  theirs.actors = 4;
  mine.actors = 8;
  CHECK(graph_difference(theirs, mine)
        == "this process's graph has 8 actors, and the job has 4: start all hosts with the same "
           "options");
}

TEST_CASE("remarks_of_a_graph_keep_their_order") {
  graph described;
  described.remark("one");
  described.remark("two");
  CHECK(described.remarks() == std::vector<std::string>{"one", "two"});
}

TEST_CASE("frozen_tables_have_no_optimizer_and_the_sync_of_those_that_learn") {
  run_options options;
  options.sync = {consistency_mode::ssp, 3};
  options.optimizer.kind = optimizer_kind::adam;
  options.optimizer.learning_rate = 0.5f;
  auto teacher = table_of("teacher", 4);
  teacher.frozen = true;
  auto store = options.store({teacher, table_of("w", 4)});
  store.tables()[0].sync = {};
  const auto g = graph_of(store, options);
  options.given = {"--lr", "--sync"};
  const auto made = lower("tiny", g, options);
  REQUIRE(made);
  CHECK(made->job.tables[0].optimizer == optimizer_spec{});
  CHECK(made->job.tables[0].sync == options.sync);
  CHECK(made->job.tables[1].optimizer == options.optimizer);
  CHECK(made->options.sync == options.sync);
  CHECK(to_text(*made).find("2 tables, 8 floats, 1 frozen, ssp:3") != std::string::npos);
  auto theirs = made->job;
  theirs.tables[1].optimizer.learning_rate = 0.1f;
  CHECK(overruled(options, made->job, theirs)
        == "using the main host's --lr 0.1; this host's value is ignored");
}

TEST_CASE("frozen_tables_that_cannot_be_are_one_line") {
  const run_options options;
  auto teacher = table_of("teacher", 4);
  teacher.frozen = true;
  const auto with = [&](const table_spec& frozen, run_options how = {}) {
    return rejection_of(graph_of(servers{.tables = {table_of("w", 4), frozen}}, how, how.stages()),
                        how);
  };
  CHECK(with(teacher).empty());
  CHECK(rejection_of(graph_of(servers{.tables = {teacher}}, options), options)
        == "all tables are frozen, so nothing is trained: leave one of them unfrozen");
  auto rows = teacher;
  rows.shape.clear();
  rows.kind = table_kind::sparse;
  rows.width = 2;
  CHECK(with(rows)
        == "table 'teacher' is frozen, and it is sparse: make it dense, or leave it unfrozen");
  run_options packed;
  packed.codec.pushes["teacher"] = {encoding::fp16, 0};
  CHECK(with(teacher, packed)
        == "table 'teacher' is frozen, and has no gradient that --compress teacher=... could pack: "
           "leave it out");
  auto stepping = teacher;
  stepping.optimizer = {.kind = optimizer_kind::user, .function = "f/1"};
  graph g = graph_of(servers{.tables = {table_of("w", 4), stepping}}, options);
  const function_spec none{[](const step_info&, std::span<float>, std::span<float>,
                              std::span<const float>) { return true; }};
  CHECK(lower("tiny", g, options, {{"f/1", none}}).error().text
        == "table 'teacher' is frozen, and its function 'f/1' would never be called: leave the "
           "function out");
}

TEST_CASE("values_from_files_that_cannot_be_are_one_line") {
  run_options options;
  auto begun = table_of("w", 4);
  begun.values = from_file("w.npz", "weights");
  begun.values_checksum = 5; // A program cannot set it.
  const auto g = graph_of(servers{.tables = {begun}}, options);
  const auto made = lower("tiny", g, options);
  REQUIRE(made);
  CHECK(made->values == std::vector<std::optional<values_file>>{values_file{"w.npz", "weights"}});
  CHECK(made->files == std::vector<std::string>{"w.npz"});
  CHECK_FALSE(made->job.tables[0].values);
  CHECK(made->job.tables[0].values_checksum == 0);
  options.import_file = "all.npz";
  CHECK(rejection_of(g, options)
        == "table 'w' begins with the values of w.npz, and --import has values of all tables: "
           "leave one of them out");
  begun.shape.clear();
  begun.kind = table_kind::sparse;
  begun.width = 2;
  CHECK(rejection_of(graph_of(servers{.tables = {begun}}, options), {})
        == "table 'w' begins with the values of w.npz, and it is sparse: leave the file out, or "
           "make the table dense");
}

} // namespace plan_test
