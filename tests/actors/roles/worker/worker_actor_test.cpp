#include "actors/roles/worker/worker_actor.hpp"
#include "tests/actors/actor_fixture.hpp"
#include "tests/actors/shard_fixture.hpp"
#include "tests/actors/tiny_training.hpp"

#include "doctest/doctest.h"

#include <cmath>
#include <stdexcept>

namespace worker_actor_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

pull_reply sevens(const pull_request& asked) {
  pull_reply answer{42, {}};
  for (const auto& where : asked.ranges) {
    static buffer_pool pool;
    const auto numbers = pool.floats(where.count);
    std::fill_n(numbers.get(), where.count, 7.0f);
    answer.pieces.push_back({where, numbers});
  }
  return answer;
}

using lane_maker = std::function<lane_options(caf::actor_system&)>;

/// Returns the lanes of a worker to which one channel leads, without a sender. Each wait for a
/// parcel takes 25 ms by their clock.
lane_maker lanes_of_one_port(port_base& port) {
  struct no_links final : lane_links {
    void connect(lane_link, const member_address&) override {}
    void send(lane_link, channel_message) override {}
    void refuse(lane_link, const failure&) override {}
    void close(lane_link) override {}
  };
  return [&port](caf::actor_system& system) {
    channel_end end;
    end.channel = "players>learners";
    end.peers = {{role::actor, 0, {}}};
    lane_options made;
    made.room = std::make_shared<port_room>(member_id{role::worker, 1, {66}}, std::vector{end});
    made.carry = [&system, &port](const auto& room, port_surroundings around) {
      around.why_no_wait.clear(); // The fixture runs actors in virtual time.
      around.clock = [now = time_point{0}]() mutable { return now += 25ms; };
      room->begin(std::move(around), std::make_shared<no_links>());
      room->bind(0, port);
      return system.spawn([](listener_sink::pointer) -> listener_sink::behavior_type {
        return {[](const std::vector<member_address>&) {}};
      });
    };
    return made;
  };
}

struct fixture : actor_fixture {
  explicit fixture(consistency sync = asp(), std::chrono::milliseconds slowness = 0ms,
                   trainer_factory make = {}, std::uint32_t ahead_max = 0, bool delta_pulls = false,
                   bool with_frozen = false, const lane_maker& lanes = {})
      : job(job_of(std::vector(with_frozen ? 2 : 1, sync), 2, 100)), coordinator(*this), kv(*this) {
    job.tables.back().frozen = with_frozen;
    kv.on_pull(sevens);
    kv.on_push([](const push_request&) { return push_reply{}; });
    job.tables[0].optimizer.clip_norm = 100; // Otherwise no norm is computed.
    worker_options options;
    options.self = {role::worker, 1, {66}};
    options.job = job;
    if (slowness > 0ms)
      options.slowness = [slowness] { return slowness; };
    options.step_planner.ahead_max = ahead_max;
    options.delta_pulls = delta_pulls;
    options.own_thread = false;
    if (lanes)
      options.ports = lanes(system);
    options.works = [this] { ++works; };
    if (!make)
      make =
        trainers([this](const batch& work, const_tensors parameters, mutable_tensors gradients) {
          seen.push_back(work.id.value);
          parameter = parameters[0][3];
          return compute(work, parameters, gradients);
        });
    worker = owned(
      spawn_worker(system, options, make, {kv.handle(), kv.handle()}, coordinator.connector()));
  }

  desired_worker admitted(std::vector<lease> leases, std::uint64_t generation = 1) {
    desired_worker what;
    what.view = {{++config}, {generation}, {}, {}};
    what.leases = std::move(leases);
    what.admitted = true;
    return what;
  }
  void lease(std::vector<troupe::lease> leases, std::uint64_t generation = 1) {
    coordinator.order(worker, admitted(std::move(leases), generation));
  }

  std::vector<std::uint64_t> pushed() const {
    std::vector<std::uint64_t> batches;
    for (const auto& x : kv.pushes())
      batches.push_back(x.step.batch.value);
    return batches;
  }
  const worker_status& last() const { return coordinator.last<worker_status>(); }
  const worker_status& report_now() {
    advance(100ms);
    return last();
  }

  job_spec job;
  fake_coordinator coordinator;
  fake_kv kv;
  std::vector<std::uint64_t> seen; ///< Batches that the trainer saw.
  float parameter = 0;
  gradient_function compute = constant_gradient(2);
  std::uint64_t config = 0;
  int works = 0; ///< Calls of worker_options::works.
  troupe::member_handle worker;
};

using numbers_list = std::vector<std::uint64_t>;

const auto hold_push = [](const push_request&) { return std::optional<fake_kv::push_answer>{}; };
const auto hold_pull = [](const pull_request&) { return std::optional<fake_kv::pull_answer>{}; };
const auto answer_push = [](const push_request&) { return fake_kv::push_answer{push_reply{}}; };

} // namespace

TEST_CASE("a_worker_reports_at_once_and_then_every_100_ms") {
  fixture f;
  REQUIRE(f.coordinator.reports().size() == 1);
  CHECK(f.coordinator.reports()[0].from == member_id{role::worker, 1, {66}});
  CHECK(f.coordinator.reports()[0].job == fingerprint(f.job));
  f.advance(1000ms);
  CHECK(f.coordinator.reports().size() == 11);
}

TEST_CASE("a_worker_does_its_leases_in_order_and_reports_them_done") {
  fixture f;
  f.lease({{1, {10}, 2, 1}, {2, {4}, 3, 2}});
  CHECK(f.pushed() == numbers_list{4, 6, 8, 10, 11});
  CHECK(f.seen == f.pushed());
  CHECK(f.parameter == 7);
  // Each lease was reported as soon as it was done.
  const auto leases = f.last().leases;
  REQUIRE(leases.size() == 2);
  CHECK(leases[0].done == std::vector<batch_id>{{10}, {11}});
  CHECK(leases[1].done == std::vector<batch_id>{{4}, {6}, {8}});
  CHECK(f.coordinator.reports().size() == 3);
  const auto& push = f.kv.pushes()[0];
  CHECK(push.step.worker.value == 1);
  CHECK(push.step.incarnation.value == 66);
  CHECK(push.base_version == 42);
  CHECK(push.gradient_norm == 4); // Four elements of 2.
  CHECK(push.pieces.at(0).values.get()[3] == 2);
}

TEST_CASE("a_worker_works_from_its_first_acknowledged_batch_on") {
  fixture f;
  f.kv.on_push(hold_push);
  f.lease({{1, {10}, 2, 1}});
  CHECK(f.pushed() == numbers_list{10});
  CHECK(f.works == 0);
  fixture answered;
  answered.lease({{1, {10}, 2, 1}});
  CHECK(answered.works == 2);
}

TEST_CASE("each_step_is_a_clock_from_the_start_clock_on") {
  fixture f;
  auto what = f.admitted({{1, {0}, 2, 1}});
  what.start_clock = 30;
  f.coordinator.order(f.worker, what);
  REQUIRE(f.kv.pushes().size() == 2);
  CHECK(f.kv.pulls()[0].step.clock == 30);
  CHECK(f.kv.pushes()[0].step.clock == 30);
  CHECK(f.kv.pushes()[1].step.clock == 31);
  CHECK(f.last().clock == 32);
}

TEST_CASE("a_worker_that_is_not_admitted_waits") {
  fixture f;
  auto what = f.admitted({{1, {0}, 1, 1}});
  what.admitted = false;
  f.coordinator.order(f.worker, what);
  CHECK(f.kv.pulls().empty());
  f.lease({{1, {0}, 1, 1}});
  CHECK(f.pushed() == numbers_list{0});
}

TEST_CASE("each_new_view_is_passed_on_once") {
  fixture f;
  f.lease({});
  f.lease({});
  auto old = f.admitted({});
  old.view.config = {1};
  f.coordinator.order(f.worker, old);
  REQUIRE(f.kv.views().size() == 2);
  CHECK(f.kv.views()[1].config.value == 2);
}

TEST_CASE("a_push_and_the_pull_for_the_next_batch_are_one_request") {
  fixture f;
  f.lease({{1, {0}, 5, 1}});
  CHECK(f.kv.pushes().size() == 5);
  CHECK(f.kv.pulls().size() == 5);
  CHECK(f.kv.requests() == 6); // The first pull and the last push are alone.
}

TEST_CASE("in_bsp_values_of_the_same_clock_are_not_asked_for_with_a_push") {
  fixture f{bsp()};
  f.kv.on_push(hold_push);   // Push replies of a clock wait for all of its slots.
  f.lease({{1, {0}, 2, 1}}); // Both slots of clock 0: the other worker is gone.
  CHECK(f.pushed() == numbers_list{0, 1});
  f.kv.on_push(answer_push);
  f.kv.release();
  CHECK(f.report_now().counters.pushes_acknowledged == 2);
}

TEST_CASE("pushes_in_flight_are_bounded") {
  fixture f;
  f.kv.on_push(hold_push);
  f.lease({{1, {0}, 9, 1}});
  CHECK(f.pushed() == numbers_list{0}); // The next values come with its push reply.
  f.kv.on_push(answer_push);
  f.kv.release();
  CHECK(f.pushed().size() == 9);
}

TEST_CASE("a_push_that_was_dropped_is_computed_again") {
  for (const auto code : {errc::rolled_back, errc::timed_out, errc::not_ready}) {
    CAPTURE(to_string(code));
    fixture f;
    int refusals = 1;
    f.kv.on_push([&, code](const push_request&) -> fake_kv::push_answer {
      if (refusals-- > 0)
        return failure{code, ""};
      return push_reply{};
    });
    f.lease({{1, {0}, 2, 1}});
    f.advance(100ms);
    CHECK(f.pushed() == numbers_list{0, 1, 0});
    CHECK(f.last().counters.pushes_acknowledged == 2);
  }
}

TEST_CASE("a_pull_that_failed_is_tried_again_at_the_next_tick") {
  fixture f;
  f.kv.on_pull([](const pull_request&) { return failure{errc::not_ready, ""}; });
  f.lease({{1, {0}, 1, 1}});
  CHECK(f.kv.pulls().size() == 1);
  f.advance(300ms);
  CHECK(f.kv.pulls().size() == 4);
  CHECK_FALSE(f.last().failed);
}

TEST_CASE("errors_that_only_a_person_can_cure_fail_the_job") {
  fixture f;
  SUBCASE("of a pull") {
    f.kv.on_pull([](const pull_request&) { return failure{errc::shape_mismatch, "does not fit"}; });
  }
  SUBCASE("of a push") {
    f.kv.on_push([](const push_request&) { return failure{errc::shape_mismatch, "does not fit"}; });
  }
  SUBCASE("a gradient that turned bad on its way") {
    f.kv.on_push([](const push_request&) { return failure{errc::non_finite, "does not fit"}; });
  }
  SUBCASE("of the trainer") {
    f.compute = [](const batch&, const_tensors, mutable_tensors) -> double {
      throw std::runtime_error{"does not fit"};
    };
  }
  f.lease({{1, {0}, 5, 1}});
  CHECK(f.last().failed.value().text == "does not fit");
  const auto pulls = f.kv.pulls().size();
  f.advance(500ms);
  CHECK(f.kv.pulls().size() == pulls);
}

TEST_CASE("a_trainer_that_cannot_be_made_fails_the_job") {
  fixture f{asp(), 0ms,
            []() -> std::unique_ptr<trainer> { throw std::runtime_error{"no such data"}; }};
  f.lease({{1, {0}, 5, 1}});
  CHECK(f.last().failed.value().text == "no such data");
  CHECK(f.kv.pushes().empty());
}

TEST_CASE("a_failure_with_an_empty_text_fails_the_job_and_no_batch_counts") {
  failure why{errc::job_failed, "std::runtime_error without a text"};
  const auto check = [&](fixture& f) {
    f.lease({{1, {0}, 5, 1}});
    CHECK(f.last().failed == why);
    CHECK(f.kv.pushes().empty());
    CHECK(f.report_now().counters.batches_computed == 0);
    CHECK(f.report_now().leases.at(0).done.empty());
  };
  SUBCASE("of the trainer") {
    fixture f;
    f.compute = [](const batch&, const_tensors, mutable_tensors) -> double {
      throw std::runtime_error{""};
    };
    check(f);
  }
  SUBCASE("of the trainer's maker") {
    fixture f{asp(), 0ms, []() -> std::unique_ptr<trainer> { throw std::runtime_error{""}; }};
    check(f);
  }
  SUBCASE("of a pull") {
    why = {errc::shape_mismatch, ""};
    fixture f;
    f.kv.on_pull([&](const pull_request&) { return why; });
    check(f);
  }
}

TEST_CASE("a_gradient_that_is_not_finite_marks_its_batch_and_is_counted") {
  fixture f;
  f.compute = [](const batch& work, const_tensors, mutable_tensors gradients) {
    gradients[0][2] = work.id.value == 1 ? std::nanf("") : 0;
    gradients[0][0] = gradients[0][1] = gradients[0][3] = 0;
    return work.id.value == 1 ? std::nan("") : 5.0;
  };
  f.lease({{1, {0}, 3, 1}});
  CHECK(f.pushed() == numbers_list{0, 1, 2});
  CHECK(f.kv.pushes()[0].pieces.size() == 1);
  CHECK(f.kv.pushes()[1].pieces.empty());
  CHECK(f.kv.pushes()[1].tables.size() == 1);
  CHECK(f.kv.pushes()[1].gradient_norm == 0);
  const auto& counters = f.report_now().counters;
  CHECK(counters.pushes_refused == 1);
  CHECK(counters.pushes_acknowledged == 3);
  CHECK(counters.loss_sum == 10);
  CHECK(counters.loss_count == 2);
  CHECK_FALSE(f.last().failed);
}

TEST_CASE("20_gradients_in_a_row_that_are_not_finite_are_a_divergence") {
  fixture f;
  f.compute = [](const batch& work, const_tensors, mutable_tensors gradients) {
    for (auto& x : gradients[0])
      x = work.id.value == 19 ? 1.0f : std::nanf("");
    return 0.0;
  };
  f.lease({{1, {0}, 60, 1}});
  // Batches 0 to 18 and 20 to 39; the finite gradient between them begins the count anew.
  CHECK(f.seen.size() == 40);
  CHECK(f.last().failed.value().text
        == "training diverged: 20 gradients in a row are not finite; a smaller --lr may help");
}

TEST_CASE("20_gradients_in_a_row_that_cannot_be_had_from_their_device_fail_the_job") {
  fixture f;
  int push = 0;
  f.kv.on_push([&](const push_request&) -> fake_kv::push_answer {
    if (push++ == 19)
      return push_reply{};
    return failure{errc::device_failed, "it is lost"};
  });
  f.lease({{1, {0}, 2, 1}});
  CHECK(f.pushed().size() == 40);
  CHECK(f.last().failed.value().text
        == "20 gradients in a row cannot be had from their device: it is lost");
}

TEST_CASE("a_rollback_drops_everything") {
  fixture f;
  f.kv.on_push(hold_push);
  f.lease({{1, {0}, 2, 1}});
  CHECK(f.pushed() == numbers_list{0});
  f.lease({}, 2);
  CHECK(f.report_now().leases.empty());
  CHECK(f.last().generation.value == 2);
  CHECK(f.last().clock == 0);
  f.kv.on_push(answer_push);
  f.kv.release(); // The replies are of the old generation.
  CHECK(f.report_now().counters.pushes_acknowledged == 0);
  f.lease({{2, {0}, 1, 1}}, 2);
  CHECK(f.pushed() == numbers_list{0, 0});
  CHECK(f.kv.pushes()[1].step.generation.value == 2);
}

TEST_CASE("a_rollback_drops_the_gradient_that_is_being_computed") {
  fixture f{asp(), 500ms};
  f.lease({{1, {0}, 1, 1}});
  CHECK(f.seen == numbers_list{0});
  f.lease({}, 2);
  f.advance(1000ms);
  CHECK(f.kv.pushes().empty());
}

TEST_CASE("values_of_a_pull_before_a_rollback_are_not_used") {
  fixture f;
  f.kv.on_pull(hold_pull);
  f.lease({{1, {0}, 1, 1}});
  f.lease({}, 2);
  f.kv.on_pull(sevens);
  f.kv.release();
  CHECK(f.seen.empty());
}

TEST_CASE("bsp_takes_a_smaller_batch_first_because_others_wait_for_it") {
  fixture f{bsp()};
  f.kv.on_pull(hold_pull);
  f.lease({{1, {5}, 1, 1}});
  REQUIRE(f.kv.pulls().size() == 1);
  f.lease({{1, {5}, 1, 1}, {2, {0}, 1, 1}});
  REQUIRE(f.kv.pulls().size() == 2);
  CHECK(f.kv.pulls()[1].step.batch.value == 0);
  f.kv.on_pull([](const pull_request& asked) {
    pull_reply answer;
    answer.pieces = {{asked.ranges[0], buffer_pool{}.floats(4)}};
    return answer;
  });
  f.kv.release();
  CHECK(f.pushed() == numbers_list{0, 5});
}

TEST_CASE("asp_finishes_its_batch_before_a_smaller_one") {
  fixture f;
  f.kv.on_pull(hold_pull);
  f.lease({{1, {5}, 1, 1}});
  f.lease({{1, {5}, 1, 1}, {2, {0}, 1, 1}});
  f.kv.on_pull(sevens);
  f.kv.release();
  CHECK(f.pushed() == numbers_list{5, 0});
}

TEST_CASE("values_are_pulled_ahead_while_a_gradient_is_computed") {
  fixture f{asp(), 300ms, {}, 1};
  f.lease({{1, {0}, 4, 1}});
  CHECK(f.seen == numbers_list{0, 1});
  CHECK(f.pushed().empty());
  CHECK(f.kv.pulls().size() == 2);
  f.advance(300ms);
  CHECK(f.pushed() == numbers_list{0});
  REQUIRE(f.kv.pulls().size() == 3);
  CHECK(f.kv.pulls()[2].step.clock == 1); // The pull follows the push of batch 0.
  f.advance(600ms);
  CHECK(f.pushed() == numbers_list{0, 1, 2});
}

TEST_CASE("a_frozen_table_is_pulled_once_and_again_after_a_rollback") {
  for (const bool delta_pulls : {false, true}) {
    CAPTURE(delta_pulls);
    fixture f{asp(), 0ms, {}, 0, delta_pulls, true};
    const range learned{{0}, 0, 4}, frozen{{1}, 0, 4};
    f.compute = [&](const batch&, const_tensors parameters, mutable_tensors gradients) {
      CHECK(parameters[1].size() == 4);
      CHECK(parameters[1][3] == 7);
      CHECK(gradients[1].empty());
      std::ranges::fill(gradients[0], 1.0f);
      return 0.0;
    };
    f.lease({{1, {0}, 3, 1}});
    f.lease({{2, {0}, 2, 1}}, 2); // History was rolled back.
    std::vector<std::vector<range>> asked;
    for (const auto& pull : f.kv.pulls())
      asked.push_back(pull.ranges);
    CHECK(asked
          == std::vector<std::vector<range>>{
            {learned, frozen}, {learned}, {learned}, {learned, frozen}, {learned}});
    REQUIRE(f.kv.pushes().size() == 5);
    for (const auto& push : f.kv.pushes()) {
      CHECK(push.tables == std::vector<table_id>{{0}, {1}}); // So its batch is marked in both.
      REQUIRE(push.pieces.size() == 1);
      CHECK(push.pieces[0].where == learned);
    }
  }
}

TEST_CASE("pulls_ahead_wait_until_the_frozen_tables_are_there") {
  fixture f{asp(), 300ms, {}, 2, false, true};
  f.kv.on_pull(hold_pull);
  f.lease({{1, {0}, 4, 1}});
  CHECK(f.kv.pulls().size() == 1);
  f.kv.on_pull(sevens);
  f.kv.release();
  REQUIRE(f.kv.pulls().size() == 3);
  CHECK(f.kv.pulls()[1].ranges.size() == 1);
  CHECK(f.kv.pulls()[2].ranges.size() == 1);
}

TEST_CASE("in_bsp_a_smaller_batch_does_not_wait_for_the_pull_of_frozen_tables") {
  fixture f{bsp(), 0ms, {}, 0, false, true};
  f.kv.on_pull(hold_pull); // It waits for clock 0, which has batch 0 as a slot.
  f.lease({{1, {5}, 1, 1}});
  f.lease({{1, {5}, 1, 1}, {2, {0}, 1, 1}});
  REQUIRE(f.kv.pulls().size() == 2);
  CHECK(f.kv.pulls()[1].step.batch.value == 0);
}

TEST_CASE("a_pull_of_frozen_tables_that_failed_is_tried_again") {
  fixture f{asp(), 0ms, {}, 1, false, true};
  f.kv.on_pull([](const pull_request&) { return failure{errc::peer_lost, "no link"}; });
  f.lease({{1, {0}, 2, 1}});
  f.kv.on_pull(sevens);
  f.advance(100ms);
  CHECK(f.pushed() == numbers_list{0, 1});
}

TEST_CASE("time_without_a_gradient_to_compute_is_counted") {
  fixture f;
  f.kv.on_pull(hold_pull);
  f.lease({{1, {0}, 1, 1}});
  f.advance(70ms);
  f.kv.on_pull(sevens);
  f.kv.release();
  f.lease({{2, {1}, 1, 1}});
  f.advance(30ms);
  CHECK(f.report_now().counters.wait_us == 200'000); // A wait for a lease counts before it ends.
}

TEST_CASE("time_in_which_the_trainer_waits_for_a_parcel_is_counted_once") {
  in<int> came{"came"};
  const auto lanes = lanes_of_one_port(came);
  fixture f{asp(),
            0ms,
            trainers([&](const batch&, const_tensors, mutable_tensors) {
              CHECK_FALSE(came.next(1ms));
              return 0.0;
            }),
            0,
            false,
            false,
            lanes};
  CHECK_FALSE(came.next(1ms)); // A callback between two batches may wait, too.
  f.advance(100ms);
  f.lease({{1, {0}, 1, 1}});
  const auto one = f.report_now().counters;
  CHECK(one.batches_computed == 1);
  CHECK(one.channel_wait_us == 25'000);
  CHECK(one.wait_us == 200'000);
  CHECK_FALSE(came.next(1ms));
  f.lease({{2, {1}, 1, 1}});
  const auto two = f.report_now().counters;
  CHECK(two.batches_computed == 2);
  CHECK(two.channel_wait_us == 50'000);
  CHECK(two.wait_us == 300'000);
}

TEST_CASE("a_gradient_that_nobody_wants_any_more_counts_as_computed") {
  fixture f{asp(), 300ms};
  f.lease({{1, {0}, 1, 1}});
  f.advance(100ms);
  f.lease({});
  f.advance(300ms);
  CHECK(f.pushed().empty());
  CHECK(f.report_now().counters.batches_computed == 1);
  CHECK(f.last().counters.wait_us == 200'000); // The time of that step is no wait.
}

TEST_CASE("bsp_may_have_as_many_slots_in_flight_as_a_clock_has") {
  fixture f{bsp()};
  f.kv.on_push(hold_push);
  f.lease({{1, {0}, 9, 1}});
  CHECK(f.pushed().size() == f.job.workers);
}

TEST_CASE("a_straggler_takes_its_time_for_each_step") {
  fixture f{asp(), 300ms};
  f.lease({{1, {0}, 3, 1}});
  f.advance(290ms);
  CHECK(f.kv.pushes().empty());
  f.advance(10ms);
  CHECK(f.kv.pushes().size() == 1);
  f.advance(600ms);
  CHECK(f.kv.pushes().size() == 3);
}

TEST_CASE("a_worker_told_to_stop_is_silent") {
  fixture f;
  f.coordinator.order(f.worker, desired_worker{}, true);
  const auto count = f.coordinator.reports().size();
  f.advance(1000ms);
  CHECK(f.coordinator.reports().size() == count);
}

TEST_CASE("desired_states_that_are_older_or_for_others_are_ignored") {
  fixture f;
  f.lease({});
  desired_state old;
  old.stop = true;
  old.body = desired_worker{};
  f.send(f.worker, old);
  old.term = 9;
  old.body = desired_server{};
  f.send(f.worker, old);
  f.lease({{1, {0}, 1, 1}});
  CHECK(f.pushed() == numbers_list{0});
}

TEST_CASE("a_delta_pull_names_what_the_worker_has_and_what_is_unchanged_is_taken_from_there") {
  fixture f{asp(), 0ms, {}, 0, true};
  std::vector<float> seen;
  f.compute = [&](const batch& work, const_tensors parameters, mutable_tensors gradients) {
    seen.insert(seen.end(), {parameters[0][0], parameters[0][3]});
    return constant_gradient(2)(work, parameters, gradients);
  };
  f.kv.on_pull([pulls = 0](const pull_request& asked) mutable {
    static buffer_pool pool;
    const auto numbers = pool.floats(4);
    std::fill_n(numbers.get(), 4, static_cast<float>(++pulls));
    pull_reply answer{42, {}};
    if (pulls == 1) {
      answer.pieces = {{{{0}, 0, 2, 9}, numbers}, {{{0}, 2, 2, 8}, numbers}};
    } else {
      answer.pieces = {{{{0}, 0, 2, 10}, numbers}};
      answer.unchanged = {{{0}, 2, 2}};
    }
    CHECK(asked.delta);
    return answer;
  });
  f.lease({{1, {0}, 3, 1}});
  CHECK(seen == std::vector<float>{1, 1, 2, 1, 3, 1});
  REQUIRE(f.kv.pulls().size() == 3);
  CHECK(f.kv.pulls()[0].ranges.at(0).stamp == 0);
  REQUIRE(f.kv.pulls()[2].ranges.size() == 2);
  CHECK(f.kv.pulls()[2].ranges[0].stamp == 10);
  CHECK(f.kv.pulls()[2].ranges[1].stamp == 8);
  CHECK(f.report_now().counters.bytes_received == (4 + 2 + 2) * sizeof(float));
}

TEST_CASE("a_worker_without_delta_pulls_asks_for_everything") {
  fixture f;
  f.lease({{1, {0}, 2, 1}});
  for (const pull_request& asked : f.kv.pulls()) {
    CHECK(!asked.delta);
    CHECK(asked.ranges == std::vector<range>{{{0}, 0, 4}});
  }
}

} // namespace worker_actor_test
