#include "actors/graph/run.hpp"

#include "tests/storage/temporary_directory.hpp"
#include "tests/actors/tiny_training.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace run_test {

using namespace troupe;
using namespace troupe::test;

namespace {

struct measuring final : evaluator {
  evaluation evaluate(const_tensors parameters) override {
    return {.loss = 1.5, .measures = {{"first", parameters[0][0]}}};
  }
};

double counted(const batch& work, const_tensors parameters, mutable_tensors gradients) {
  work.notes.count("steps");
  return to_three(work, parameters, gradients);
}

settings settings_of(run_mode mode) {
  settings how;
  how.name = "tiny";
  how.options.asked_mode = mode;
  how.options.epochs = 3;
  how.options.batch_samples = 4;
  how.options.workers.count = 2;
  how.options.servers.count = 1;
  return how;
}

graph with_evaluator(const run_options& options, gradient_function what) {
  graph g;
  auto model = g.add("model", options.store({table_of("w", 7)}));
  g.add("learners", options.workers_of(100, trainers(std::move(what))))
    .into(options.stages(), model);
  g.add("test", evaluate{[] { return std::make_unique<measuring>(); }}).into(model);
  return g;
}

} // namespace

TEST_CASE("a graph runs inside a program, with threads and in virtual time") {
  for (const auto mode : {run_mode::threads, run_mode::simulation}) {
    auto how = settings_of(mode);
    how.options.sync.mode = consistency_mode::bsp; // In asp a late gradient moves the last values.
    std::vector<std::string> lines;
    how.log = [&](log_level, const std::string& line) { lines.push_back(line); };
    const auto done = run(with_evaluator(how.options, counted), how);
    REQUIRE(done);
    CHECK(done->epochs == 3);
    CHECK(done->seconds > 0);
    REQUIRE(done->last);
    CHECK(done->last->loss == 1.5);
    CHECK(done->last->measures[0].name == "first");
    CHECK(done->counts.at("learners.steps") >= 75);
    REQUIRE(done->values.at("w").size() == 7);
    CHECK(done->values.at("w")[6] == doctest::Approx(3).epsilon(0.05));
    CHECK(done->last->measures[0].value == done->values.at("w")[0]);
    CHECK(done->json.find("\"loss_curve\"") != std::string::npos);
    CHECK(std::ranges::count(lines, "all 75 batches are applied") == 1);
  }
}

TEST_CASE("a figure of an evaluation that is not finite is named, with its cause") {
  struct spoiled final : evaluator {
    evaluation evaluate(const_tensors) override {
      return {.loss = 1.5,
              .measures = {{"share", std::numeric_limits<double>::quiet_NaN()},
                           {"ratio", std::numeric_limits<double>::infinity()}}};
    }
  };
  auto how = settings_of(run_mode::simulation);
  how.options.epochs = 1;
  std::vector<std::string> lines;
  how.log = [&](log_level, const std::string& line) { lines.push_back(line); };
  graph g;
  auto model = g.add("model", how.options.store({table_of("w", 7)}));
  g.add("learners", how.options.workers_of(100, trainers(counted))).into(model);
  g.add("test", evaluate{[] { return std::make_unique<spoiled>(); }}).into(model);
  REQUIRE(run(g, how));
  const std::string cause = ": the parameters are finite, so the evaluator made it";
  CHECK(std::ranges::count(lines, "test share is NaN" + cause) >= 1);
  CHECK(std::ranges::count(lines, "test ratio is infinite" + cause) >= 1);
}

TEST_CASE("a graph without an evaluator has its values in the end") {
  auto how = settings_of(run_mode::threads);
  how.options.sync.mode = consistency_mode::bsp;
  const auto done = run(tiny_graph(how.options, 100, to_three), how);
  REQUIRE(done);
  CHECK_FALSE(done->last);
  CHECK(done->values.at("w").size() == 9000);
  CHECK(done->values.at("bias")[4] == doctest::Approx(3).epsilon(0.05));
}

TEST_CASE("run() reads the values with which a table begins") {
  const storage::temporary_directory folder;
  auto how = settings_of(run_mode::threads);
  how.options.export_file = folder.path() / "begun.npz";
  REQUIRE(run(with_evaluator(how.options, counted), how));
  const auto with_values = [&](const std::string& file, run_mode mode) {
    auto again = settings_of(mode);
    graph g;
    auto tables = std::vector{table_of("v", 7), table_of("w", 7)};
    tables[1].frozen = true;
    tables[1].values = from_file(file);
    auto model = g.add("model", again.options.store(tables));
    g.add("learners", again.options.workers_of(100, trainers([](auto&&, auto&&, auto gradients) {
                                                 std::ranges::fill(gradients[0], 0.0f);
                                                 return 0.0;
                                               })))
      .into(model);
    return run(g, again);
  };
  for (const auto mode : {run_mode::threads, run_mode::simulation}) {
    const auto done = with_values(*how.options.export_file, mode);
    REQUIRE(done);
    CHECK(done->values.at("w")[6] == doctest::Approx(3).epsilon(0.2));
    const auto failed = with_values(folder.path() / "none.npz", mode);
    REQUIRE_FALSE(failed);
    CHECK(failed.error().text.find("none.npz") != std::string::npos);
  }
}

TEST_CASE("simulated runs of one seed end in the same values") {
  const auto how = settings_of(run_mode::simulation);
  const auto values = [&] { return run(tiny_graph(how.options, 100, noisy), how)->values; };
  const auto first = values();
  CHECK(first == values());
}

TEST_CASE("runs may overlap") {
  const auto how = settings_of(run_mode::threads);
  std::vector<bool> done(2);
  std::thread other{
    [&] { done[0] = static_cast<bool>(run(tiny_graph(how.options, 100, noisy), how)); }};
  const bool mine = static_cast<bool>(run(tiny_graph(how.options, 100, noisy), how));
  other.join();
  CHECK(mine);
  CHECK(done[0]);
}

TEST_CASE("a run that fails has its cause, and the next one runs") {
  for (const auto mode : {run_mode::threads, run_mode::simulation}) {
    const auto how = settings_of(mode);
    const auto throws = [](const batch&, const_tensors, mutable_tensors) -> double {
      throw std::runtime_error{"no such sample"};
    };
    const auto failed = run(with_evaluator(how.options, throws), how);
    REQUIRE_FALSE(failed);
    CHECK(failed.error().code == errc::job_failed);
    CHECK(failed.error().text.find("no such sample") != std::string::npos);
    CHECK(failed.error().text.find('\n') == std::string::npos);
    CHECK(run(with_evaluator(how.options, counted), how));
  }
}

TEST_CASE("a run fails where user code throws an exception with an empty text") {
  const auto silent_trainer = [](const batch&, const_tensors, mutable_tensors) -> double {
    throw std::runtime_error{""};
  };
  const auto silent_maker = []() -> std::unique_ptr<trainer> { throw std::runtime_error{""}; };
  struct silent_evaluator final : evaluator {
    evaluation evaluate(const_tensors) override { throw std::runtime_error{""}; }
  };
  const auto graph_of = [](const run_options& options, trainer_factory make, bool is_silent) {
    graph g;
    auto model = g.add("model", options.store({table_of("w", 7)}));
    g.add("learners", options.workers_of(100, std::move(make))).into(options.stages(), model);
    g.add("test", evaluate{[is_silent]() -> std::unique_ptr<evaluator> {
            if (is_silent)
              return std::make_unique<silent_evaluator>();
            return std::make_unique<measuring>();
          }})
      .into(model);
    return g;
  };
  for (const auto mode : {run_mode::threads, run_mode::simulation}) {
    const auto how = settings_of(mode);
    for (const auto& g : {graph_of(how.options, trainers(silent_trainer), false),
                          graph_of(how.options, silent_maker, false),
                          graph_of(how.options, trainers(counted), true)}) {
      const auto failed = run(g, how);
      REQUIRE_FALSE(failed);
      CHECK(failed.error().code == errc::job_failed);
      CHECK(failed.error().text.ends_with("std::runtime_error without a text"));
    }
  }
}

TEST_CASE("a run whose report cannot be written fails with that cause") {
  auto how = settings_of(run_mode::threads);
  how.options.report_file = "/dev/full";
  const auto failed = run(with_evaluator(how.options, counted), how);
  REQUIRE_FALSE(failed);
  CHECK(failed.error().code == errc::io_failed);
  CHECK(failed.error().text.find("cannot write /dev/full") != std::string::npos);
}

TEST_CASE("a run that cannot begin is refused in one line") {
  const auto rejection = [](const settings& how) {
    const auto done = run(with_evaluator(how.options, counted), how);
    REQUIRE_FALSE(done);
    CHECK(done.error().code == errc::invalid_argument);
    return done.error().text;
  };
  CHECK(rejection(settings_of(run_mode::processes))
        == "run() starts no processes: ask for run_mode::threads or run_mode::simulation");
  auto how = settings_of(run_mode::threads);
  how.options.kills = {{{role::worker, 0}, std::chrono::milliseconds{1}}};
  CHECK(rejection(how) == "--threads is one process: leave out --kill");
  how = settings_of(run_mode::simulation);
  how.options.checkpoint_directory = "x";
  CHECK(rejection(how)
        == "--simulate begins with the initial values and keeps no checkpoints: leave out "
           "--checkpoint");
  how = settings_of(run_mode::threads);
  how.options.servers.replicas = 3;
  CHECK(rejection(how) == "--replicas 3 needs as many --servers, not 1");
  how = settings_of(run_mode::threads);
  how.options.chosen_store = &rules_of_all_reduce;
  how.options.sync.mode = consistency_mode::bsp;
  CHECK_FALSE(rejection(how).empty());
  graph empty;
  CHECK_FALSE(run(empty));
}

TEST_CASE("a run writes the files that its options name") {
  const storage::temporary_directory folder;
  auto how = settings_of(run_mode::threads);
  how.options.report_file = folder.path() / "report.json";
  how.options.export_file = folder.path() / "values.npz";
  REQUIRE(run(with_evaluator(how.options, counted), how));
  CHECK(std::filesystem::exists(folder.path() / "report.json"));
  CHECK(std::filesystem::exists(folder.path() / "values.npz"));
}

} // namespace run_test
