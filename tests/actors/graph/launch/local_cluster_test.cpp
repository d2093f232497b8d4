// Runs whole jobs in one process, on real threads.
#include "actors/graph/launch/actor_config.hpp"
#include "actors/graph/launch/local_cluster.hpp"
#include "tests/actors/tiny_training.hpp"
#include "tests/actors/whole_job.hpp"
#include "tests/storage/temporary_directory.hpp"

#include "caf/send.hpp"
#include "doctest/doctest.h"

#include <algorithm>
#include <atomic>
#include <fstream>
#include <future>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace local_cluster_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

run_result train(run_options options, const gradient_function& what,
                 std::optional<std::filesystem::path> checkpoints = {}, notice_sink tell = {}) {
  actor_config config;
  caf::actor_system system{config};
  options.checkpoint_directory = checkpoints;
  const auto tiny = tiny_plan(options, 80, what);
  const auto& job = tiny.job;
  std::promise<run_result> end;
  auto coming = end.get_future();
  auto cluster = local_cluster::start(system, tiny, tell);
  REQUIRE(cluster);
  const auto store = cluster->client();
  system.spawn(run_watcher, job, store, cluster->coordinator(), &end);
  REQUIRE(coming.wait_for(30s) == std::future_status::ready);
  caf::anon_send_exit(store.values, caf::exit_reason::user_shutdown);
  return coming.get();
}

constexpr std::uint64_t batches = 20 * 5;

} // namespace

TEST_CASE("a_tiny_problem_is_solved_under_every_consistency") {
  for (const consistency sync :
       {consistency{consistency_mode::bsp, 0}, consistency{consistency_mode::ssp, 1},
        consistency{consistency_mode::asp, 0}, consistency{consistency_mode::hogwild, 0}}) {
    CAPTURE(to_string(sync));
    auto options = options_of(sync);
    options.optimizer.learning_rate = 0.2f; // At a higher rate, gradients three steps old diverge.
    // With unbounded staleness, a worker that a busy machine delays pushes its first gradient last.
    // That moves the values that the other worker has found.
    if (sync.mode == consistency_mode::asp || sync.mode == consistency_mode::hogwild)
      options.workers.count = 1;
    const auto found = train(options, to_three);
    CHECK_FALSE(found.failed);
    CHECK(found.batches_done == batches);
    REQUIRE(found.parameters.size() == 2);
    for (const auto& table : found.parameters)
      for (const float x : table)
        CHECK(x == doctest::Approx(3).epsilon(0.01));
  }
}

TEST_CASE("the end of a cluster waits for actors that are within a call") {
  static std::promise<void> begun;
  struct slow final : own_actor {
    bool has_ticked = false;
    void tick(time_point) override {
      if (!std::exchange(has_ticked, true))
        begun.set_value();
      std::this_thread::sleep_for(300ms);
    }
  };
  const auto options = options_of({consistency_mode::asp, 0});
  auto g = tiny_graph(options, 80, to_three);
  g.add("slow", actors<slow>{.count = 1, .make = [] { return std::make_unique<slow>(); }});
  const auto made = lower("tiny", g, options);
  REQUIRE_MESSAGE(made, made.error().text);
  actor_config config;
  caf::actor_system system{config}; // Its end would wait for ever for the thread of an actor.
  system.await_actors_before_shutdown(false); // As launchers do.
  const auto cluster = local_cluster::start(system, *made, {});
  REQUIRE(cluster);
  CHECK(begun.get_future().wait_for(30s) == std::future_status::ready);
}

TEST_CASE("notes live as long as a part that is within a call") {
  static std::promise<void> begun;
  static std::atomic<int> noted = 0;
  struct zeros final : part {
    bool is_first, has_begun = false;
    explicit zeros(bool first) : is_first(first) {}
    void forward(const micro_batch& micro, const_tensors, std::span<const float>,
                 part_output& out) override {
      if (!is_first)
        return;
      std::ranges::fill(out.of_width(1), 0.0f);
      if (!std::exchange(has_begun, true))
        begun.set_value();
      std::this_thread::sleep_for(300ms);
      micro.of.notes.count("forward"); // The worker has ended; ASan tells if the notes have.
      ++noted;
    }
    double backward(const micro_batch&, const_tensors, std::span<const float>,
                    std::span<const float>, mutable_tensors gradients,
                    std::span<float> in_gradient) override {
      std::ranges::fill(gradients[0], 0.0f);
      std::ranges::fill(in_gradient, 0.0f);
      return 0;
    }
  };
  auto options = options_of({consistency_mode::asp, 0});
  options.workers.count = 1; // One line.
  graph g;
  auto model = g.add("model", options.store({table_of("above", 1), table_of("below", 1)}));
  g.add("line",
        options.pipeline_of(80, {{{"above"}, [] { return std::make_unique<zeros>(true); }},
                                 {{"below"}, [] { return std::make_unique<zeros>(false); }}}))
    .into(options.stages(), model);
  const auto made = lower("tiny", g, options);
  REQUIRE_MESSAGE(made, made.error().text);
  {
    actor_config config;
    caf::actor_system system{config};
    system.await_actors_before_shutdown(false); // As launchers do.
    const auto cluster = local_cluster::start(system, *made, {});
    REQUIRE(cluster);
    REQUIRE(begun.get_future().wait_for(30s) == std::future_status::ready);
  }
  CHECK(noted > 0);
}

TEST_CASE("lines of servers are told with the server's name") {
  const storage::temporary_directory folder;
  auto options = options_of({consistency_mode::asp, 0});
  options.servers.count = 2;
  options.record_directory = folder.path() / "file" / "record"; // No trace can be written there.
  std::ofstream{folder.path() / "file"} << "text";
  std::mutex mutex;
  std::vector<std::string> lines;
  train(options, to_three, {}, [&](const notice& what) {
    const std::lock_guard lock{mutex};
    if (what.level == log_level::error)
      lines.push_back(what.member + ": " + what.text);
  });
  REQUIRE(lines.size() == 2);
  std::ranges::sort(lines);
  for (int i = 0; i < 2; ++i) {
    CHECK(lines[i].starts_with("server " + std::to_string(i) + ": "));
    CHECK(lines[i].find("Not a directory") != std::string::npos);
  }
}

TEST_CASE("bsp_gives_the_same_bytes_each_time") {
  auto options = options_of({consistency_mode::bsp, 0});
  options.optimizer.kind = optimizer_kind::adam;
  options.optimizer.learning_rate = 0.01f;
  const auto first = train(options, noisy);
  CHECK(first.parameters.at(0).at(0) != 0);
  CHECK(first.parameters == train(options, noisy).parameters);
  options.workers.delta_pulls = true;
  CHECK(first.parameters == train(options, noisy).parameters);
  options.servers.count = 1;
  CHECK(first.parameters == train(options, noisy).parameters);
}

TEST_CASE("every_codec_reaches_the_target") {
  // In asp the result would depend on how far the machine lets workers drift apart.
  for (const std::string text : {"fp16", "bf16", "int8", "onebit", "topk:0.2", "randomk:0.5"}) {
    CAPTURE(text);
    auto options = options_of({consistency_mode::bsp, 0});
    options.epochs = 8;
    options.codec.pushes[""] = *parse_compression(text);
    options.codec.pulls = encoding::fp16;
    const auto found = train(options, to_three);
    CHECK_FALSE(found.failed);
    REQUIRE(found.parameters.size() == 2);
    for (const auto& table : found.parameters)
      for (const float x : table)
        CHECK(x == doctest::Approx(3).epsilon(0.05));
  }
}

TEST_CASE("every_batch_is_applied_exactly_once") {
  const auto lr = 0.5f;
  for (const auto mode : {consistency_mode::asp, consistency_mode::ssp, consistency_mode::bsp}) {
    CAPTURE(to_string(consistency{mode, 0}));
    const auto options = options_of({mode, 0});
    // bsp takes a step with the mean of the workers' gradients.
    const auto share =
      mode == consistency_mode::bsp ? static_cast<float>(options.workers.count) : 1.0f;
    const auto found = train(options, constant_gradient(-share / lr));
    std::size_t wrong = 0;
    for (const auto& table : found.parameters)
      for (const float x : table)
        wrong += x != static_cast<float>(batches) ? 1 : 0;
    CHECK(wrong == 0);
  }
}

TEST_CASE("a_job_with_checkpoints_goes_on_where_it_ended") {
  const storage::temporary_directory folder;
  auto options = options_of({consistency_mode::asp, 0});
  options.servers.checkpoints.interval = 10ms;
  CHECK(train(options, constant_gradient(-2), folder.path()).parameters.at(0).at(8999) == 100);
  CHECK(storage::last_number(folder.path()) > 0);
  options.resume = true;
  options.epochs = 7;
  CHECK(train(options, constant_gradient(-2), folder.path()).parameters.at(0).at(8999) == 140);
}

TEST_CASE("a_trainer_that_fails_ends_the_job_with_its_text") {
  const auto found = train(options_of({consistency_mode::asp, 0}),
                           [](const batch& work, const_tensors, mutable_tensors gradients) {
                             for (const auto values : gradients)
                               std::ranges::fill(values, 0.0f);
                             if (work.id.value == 7)
                               throw std::runtime_error{"a rotten sample"};
                             return 0.0;
                           });
  CHECK(found.failed.value().text.find("a rotten sample") != std::string::npos);
}

TEST_CASE("a_cluster_that_is_dropped_in_the_middle_ends") {
  for (const auto mode : {consistency_mode::bsp, consistency_mode::hogwild}) {
    actor_config config;
    caf::actor_system system{config};
    const auto options = options_of({mode, 0});
    const auto tiny = tiny_plan(options, 1'000'000, to_three);
    auto cluster = local_cluster::start(system, tiny, {});
    REQUIRE(cluster);
  }
}

} // namespace local_cluster_test
