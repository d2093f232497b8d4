// Tests virtual time, lines, and whole jobs that are the same each time.
#include "actors/graph/launch/simulation.hpp"

#include "actors/graph/launch/actor_config.hpp"
#include "actors/graph/launch/local_cluster.hpp"
#include "actors/graph/options/recording.hpp"
#include "storage/push_history.hpp"
#include "tests/actors/tiny_training.hpp"
#include "tests/actors/whole_job.hpp"
#include "tests/storage/temporary_directory.hpp"

#include "caf/event_based_actor.hpp"
#include "caf/send.hpp"
#include "doctest/doctest.h"

#include <algorithm>
#include <array>

namespace simulation_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

struct simulated_system {
  explicit simulated_system(std::uint64_t seed = 1) : time(system, seed) {}
  time_point now() const { return time.clock()(); }

  actor_config config{0};
  caf::actor_system system{config};
  simulation time;
};

struct outcome {
  std::vector<std::vector<float>> parameters;
  time_point took{0};
  /// The pushes of each chain, in order: time, worker, batch, and the version that was read.
  std::vector<std::vector<std::array<std::uint64_t, 4>>> order;

  bool operator==(const outcome&) const = default;
};

outcome train(run_options options, std::uint64_t seed, const gradient_function& what = noisy) {
  options.asked_mode = run_mode::simulation;
  const storage::temporary_directory folder;
  options.record_directory = folder.path() / "record";
  simulated_system in{seed};
  auto asked = options; // A record shows the order of pushes, also of those that are packed.
  asked.record_directory.reset();
  auto tiny = tiny_plan(asked, 80, what);
  tiny.options.record_directory = options.record_directory;
  const auto& job = tiny.job;
  REQUIRE(begin_recording(options, job));
  std::promise<run_result> end;
  auto coming = end.get_future();
  outcome found;
  {
    auto cluster = local_cluster::start(in.system, tiny, {}, &in.time);
    REQUIRE(cluster);
    const auto store = cluster->client();
    in.system.spawn(run_watcher, job, store, cluster->coordinator(), &end);
    while (coming.wait_for(0s) != std::future_status::ready) {
      REQUIRE(in.now() < 60s);
      in.time.pass(20ms);
    }
    found.took = in.now();
  }
  auto result = coming.get();
  CHECK_FALSE(result.failed);
  found.parameters = std::move(result.parameters);
  const auto history = storage::read_push_history(*options.record_directory);
  REQUIRE(history);
  for (const auto& chain : history->chains) {
    auto& steps = found.order.emplace_back();
    for (const auto& x : chain.applied)
      steps.push_back({x.time_ns, x.worker.value, x.batch.value, x.base_version});
  }
  return found;
}

run_options options_for(consistency_mode mode) {
  auto options = options_of({mode, 1});
  options.workers.count = 3;
  options.optimizer.kind = optimizer_kind::adam;
  options.optimizer.learning_rate = 0.01f;
  return options;
}

} // namespace

TEST_CASE("what_is_due_happens_at_its_time_and_what_it_begins_too") {
  simulated_system in;
  const auto begin = in.now();
  std::vector<time_point> seen;
  in.system.spawn([&](caf::event_based_actor* self) -> caf::behavior {
    self->delayed_send(self, 3ms, tick_atom_v);
    self->delayed_send(self, 8ms, tick_atom_v);
    return {[&seen, begin, self](tick_atom) {
      seen.push_back(now_of(*self) - begin);
      if (seen.size() == 1)
        self->delayed_send(self, 1ms, tick_atom_v);
    }};
  });
  in.time.pass(5ms);
  CHECK(seen == std::vector<time_point>{3ms, 4ms});
  CHECK(in.now() == begin + 5ms);
  in.time.pass(5ms);
  CHECK(seen == std::vector<time_point>{3ms, 4ms, 8ms});
}

TEST_CASE("a_line_takes_time_and_keeps_the_order_and_brings_errors") {
  simulated_system in;
  std::vector<std::uint64_t> arrived;
  std::vector<time_point> arrived_at;
  const auto server = in.system.spawn([&](kv::pointer self) -> kv::behavior_type {
    return {[&, self](const request& what) -> caf::result<reply> {
      arrived.push_back(what.push->step.batch.value);
      arrived_at.push_back(now_of(*self));
      if (what.push->step.batch.value == 29)
        return to_caf({errc::fenced, "too many"});
      return reply{};
    }};
  });
  const auto line = in.time.line_to(server);
  const auto begin = in.now();
  std::vector<std::uint64_t> answered, expected;
  std::vector<time_point> answered_at;
  std::string failed;
  in.system.spawn([&](caf::event_based_actor* self) {
    for (std::uint64_t i = 0; i < 30; ++i) {
      request what;
      what.push.emplace();
      what.push->step.batch = {i};
      self->request(line, 1min, what)
        .then(
          [&, self, i](const reply&) {
            answered.push_back(i);
            answered_at.push_back(now_of(*self));
          },
          [&](const caf::error& why) { failed = from_caf(why).text; });
      expected.push_back(i);
    }
  });
  in.time.pass(99us);
  CHECK(arrived.empty());
  in.time.pass(1ms);
  CHECK(arrived == expected);
  in.time.pass(1ms);
  expected.pop_back();
  CHECK(answered == expected);
  CHECK(failed == "too many");
  CHECK(std::ranges::is_sorted(arrived_at));
  CHECK(std::ranges::is_sorted(answered_at));
  CHECK(arrived_at.front() < arrived_at.back());
  CHECK(arrived_at.front() - begin >= 100us);
  CHECK(answered_at.front() - arrived_at.front() >= 100us);
  caf::anon_send_exit(server, caf::exit_reason::user_shutdown);
}

TEST_CASE("steps_take_times_of_their_own_seed") {
  const auto draw = [](std::uint64_t seed, std::chrono::nanoseconds longer) {
    simulated_system in{seed};
    auto one = in.time.step_times(longer);
    auto other = in.time.step_times(longer);
    std::vector<std::chrono::nanoseconds> times;
    for (int i = 0; i < 100; ++i) {
      times.push_back(one());
      times.push_back(other());
      CHECK(times[times.size() - 2] != times.back());
    }
    return times;
  };
  const auto plain = draw(1, 0ms);
  CHECK(plain == draw(1, 0ms));
  CHECK(plain != draw(2, 0ms));
  CHECK(std::ranges::all_of(plain, [](auto x) { return x >= 5ms && x <= 15ms; }));
  CHECK(std::ranges::all_of(draw(1, 50ms), [](auto x) { return x >= 55ms && x <= 65ms; }));
}

TEST_CASE("a_seed_has_one_history_and_another_one_another") {
  for (const auto mode : {consistency_mode::asp, consistency_mode::ssp}) {
    CAPTURE(to_string(consistency{mode, 1}));
    const auto options = options_for(mode);
    const auto first = train(options, 1);
    CHECK(first.order.at(0).size() == 100);
    CHECK(first == train(options, 1));
    const auto other = train(options, 2);
    CHECK(first.order != other.order);
    CHECK(first.parameters != other.parameters);
    // Chains need not agree on an order, as in a cluster.
    CHECK(first.order.at(0) != first.order.at(1));
  }
}

TEST_CASE("what_else_runs_in_threads_is_the_same_each_time_too") {
  auto options = options_for(consistency_mode::asp);
  options.servers.count = options.servers.replicas = 3;
  options.workers.ahead = 2;
  options.servers.apply_batch = 4;
  options.workers.delta_pulls = true;
  options.slow_workers[1] = 40ms;
  const auto first = train(options, 1);
  CHECK(first == train(options, 1));
  std::size_t by_slow = 0;
  for (const auto& step : first.order.at(0))
    by_slow += step[1] == 1 ? 1 : 0;
  CHECK(by_slow > 0);
  CHECK(by_slow < 25);
}

TEST_CASE("compressed_training_is_the_same_each_time") {
  auto options = options_for(consistency_mode::asp);
  const auto plain = train(options, 1);
  for (const auto& how : {compression{encoding::int8, 0}, compression{encoding::topk, 0.1}}) {
    options.codec.pushes[""] = how;
    options.codec.pulls = encoding::bf16;
    const auto first = train(options, 1);
    CHECK(first == train(options, 1));
    CHECK(first.parameters != plain.parameters);
  }
}

TEST_CASE("without_error_feedback_bsp_ends_in_the_same_bytes_when_compressed") {
  auto options = options_for(consistency_mode::bsp);
  options.codec.pushes[""] = {encoding::int8, 0};
  options.codec.pulls = encoding::fp16;
  const auto first = train(options, 1);
  options.slow_workers[0] = 30ms;
  options.servers.count = 3;
  CHECK(first.parameters == train(options, 2).parameters);
}

TEST_CASE("bsp_ends_in_the_same_bytes_in_every_history") {
  auto options = options_for(consistency_mode::bsp);
  const auto first = train(options, 1);
  const auto other = train(options, 2);
  CHECK(first.parameters == other.parameters);
  CHECK(first.order != other.order); // The times differ.
  options.servers.count = 1;
  CHECK(first.parameters == train(options, 1).parameters);
  options.servers.count = 3;
  options.slow_workers[0] = 30ms;
  const auto slow = train(options, 1);
  CHECK(first.parameters == slow.parameters);
  CHECK(slow.took > first.took);
  options.workers.count = 2; // Each step takes the mean of two gradients.
  CHECK(first.parameters != train(options, 1).parameters);
}

TEST_CASE("a_simulated_job_may_be_dropped_in_the_middle") {
  const auto options = options_for(consistency_mode::asp);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) { // At any time, as with messages on their way.
    simulated_system in{seed};
    const auto tiny = tiny_plan(options, 1'000'000, to_three);
    const auto cluster = local_cluster::start(in.system, tiny, {}, &in.time);
    REQUIRE(cluster);
    in.time.pass(100ms * (seed % 7 + 1));
  }
}

} // namespace simulation_test
