#include "actors/protocol/worker/step_planner.hpp"
#include "tests/actors/shard_fixture.hpp"

#include "doctest/doctest.h"

namespace step_planner_test {

using namespace troupe;
using namespace troupe::test;

namespace {

struct fixture {
  explicit fixture(step_planner_options options = {}, consistency sync = asp())
      : steps(job_of({sync}, 2, 100), options) {}

  void order(std::vector<lease> leases, std::uint64_t generation = 1) {
    desired_worker what;
    what.view.generation = {generation};
    what.admitted = true;
    what.start_clock = start_clock;
    what.leases = std::move(leases);
    steps.reconcile(what);
  }

  training_step pull() {
    auto step = steps.next_pull();
    REQUIRE(step);
    return *step;
  }
  /// Pulls and computes a step.
  training_step compute() {
    const auto step = pull();
    REQUIRE(steps.pulled(step.number));
    REQUIRE(steps.next_compute());
    return step;
  }

  training_step compute_of(std::vector<lease> leases) {
    order(std::move(leases));
    return compute();
  }

  step_planner steps;
  std::uint64_t start_clock = 0;
};

} // namespace

TEST_CASE("pulls_go_ahead_of_the_gradient_as_far_as_they_may") {
  for (std::uint32_t ahead = 0; ahead < 4; ++ahead) {
    CAPTURE(ahead);
    fixture f{{ahead, 8}};
    f.order({{1, {0}, 9, 1}});
    for (std::uint64_t i = 0; i <= ahead; ++i) {
      const auto step = f.pull();
      CHECK(step.batch.value == i);
      CHECK(step.clock == 0);
      CHECK(f.steps.pulled(step.number));
    }
    CHECK_FALSE(f.steps.next_pull());
    const auto first = f.steps.next_compute();
    REQUIRE(first);
    CHECK_FALSE(f.steps.next_pull()); // The step is computed, and not yet pushed.
    CHECK(f.steps.next_compute().has_value() == (ahead > 0));
    CHECK_FALSE(f.steps.next_compute());
    const auto pushed = f.steps.computed(first->number);
    REQUIRE(pushed);
    CHECK(pushed->clock == 0);
    CHECK(f.pull().clock == 1);
  }
}

TEST_CASE("steps_are_computed_in_their_order_whatever_the_order_of_the_replies") {
  fixture f{{2, 8}};
  f.order({{1, {0}, 9, 1}});
  const auto first = f.pull();
  const auto second = f.pull();
  CHECK(f.steps.pulled(second.number));
  CHECK_FALSE(f.steps.next_compute());
  CHECK(f.steps.pulled(first.number));
  CHECK(f.steps.next_compute()->batch.value == 0);
  CHECK(f.steps.next_compute()->batch.value == 1);
  CHECK(f.steps.computed(first.number)->clock == 0);
  CHECK(f.steps.computed(second.number)->clock == 1);
}

TEST_CASE("no_gradient_is_begun_while_too_many_pushes_wait") {
  fixture f{{0, 2}};
  f.order({{1, {0}, 9, 1}});
  const auto first = f.steps.computed(f.compute().number);
  const auto second = f.steps.computed(f.compute().number);
  CHECK(f.steps.pulled(f.pull().number));
  CHECK_FALSE(f.steps.next_compute());
  CHECK(f.steps.acknowledged(*second));
  CHECK(f.steps.next_compute()->batch.value == 2);
  CHECK(f.steps.not_applied(*first));
  CHECK(f.steps.progress().at(0).done == std::vector<batch_id>{{1}});
}

TEST_CASE("a_failed_pull_is_given_again_with_the_same_place") {
  fixture f{{1, 2}};
  f.order({{1, {0}, 9, 1}});
  const auto first = f.pull();
  f.pull();
  CHECK_FALSE(f.steps.next_pull());
  f.steps.pull_failed(first.number);
  const auto again = f.pull();
  CHECK(again.number == first.number);
  CHECK(again.clock == 0);
}

TEST_CASE("a_later_start_clock_moves_the_pushes_that_are_still_to_come") {
  fixture f{{1, 2}};
  f.order({{1, {0}, 9, 1}});
  const auto step = f.compute();
  f.start_clock = 20;
  f.order({{1, {0}, 9, 1}});
  CHECK(f.steps.computed(step.number)->clock == 20);
  CHECK(f.pull().clock == 21);
}

TEST_CASE("a_step_whose_lease_was_taken_away_is_dropped") {
  fixture f{{1, 2}};
  f.order({{1, {0}, 1, 1}, {2, {5}, 2, 1}});
  const auto taken = f.compute();
  const auto kept = f.compute();
  CHECK(f.steps.take_dropped().empty());
  f.order({{2, {5}, 2, 1}});
  CHECK(f.steps.take_dropped() == std::vector{taken.number});
  CHECK(f.steps.take_dropped().empty());
  CHECK(f.steps.pulled(f.pull().number));
  CHECK_FALSE(f.steps.next_compute()); // The trainer is still busy with the other two.
  CHECK_FALSE(f.steps.computed(taken.number));
  CHECK(f.steps.next_compute()->batch.value == 6);
  CHECK(f.steps.computed(kept.number)->batch.value == 5);
}

TEST_CASE("a_rollback_forgets_all_steps_and_their_outcomes") {
  fixture f{{0, 2}};
  f.order({{1, {0}, 9, 1}});
  const auto pushed = f.steps.computed(f.compute().number);
  const auto computing = f.compute();
  f.order({{2, {0}, 9, 1}}, 2);
  CHECK(f.steps.take_dropped() == std::vector{computing.number});
  CHECK(f.steps.clock() == 0);
  CHECK_FALSE(f.steps.acknowledged(*pushed));
  CHECK_FALSE(f.steps.not_applied(*pushed));
  const auto anew = f.pull();
  CHECK(anew.batch.value == 0);
  CHECK(anew.generation.value == 2);
  CHECK(f.steps.pulled(anew.number));
  CHECK_FALSE(f.steps.next_compute());
  CHECK_FALSE(f.steps.computed(computing.number));
  CHECK(f.steps.next_compute()->number == anew.number);
}

TEST_CASE("values_of_a_history_that_was_rolled_back_are_not_wanted") {
  fixture f;
  f.order({{1, {0}, 9, 1}});
  const auto pulling = f.pull();
  f.order({{2, {0}, 9, 1}}, 2);
  CHECK_FALSE(f.steps.pulled(pulling.number));
  CHECK(f.steps.take_dropped().empty()); // It was not computed.
}

TEST_CASE("a_push_whose_lease_is_gone_leaves_its_place_to_others") {
  fixture f{{}, bsp()};
  REQUIRE(f.steps.computed(f.compute_of({{1, {0}, 1, 1}}).number)); // The step waits for batch 1.
  f.order({});
  f.order({{2, {0}, 2, 1}}); // Now both batches are its own.
  const auto again = f.steps.computed(f.compute().number);
  CHECK(again->batch.value == 0);
  CHECK(f.compute().batch.value == 1);
}

TEST_CASE("the_receipt_of_a_push_whose_lease_is_gone_changes_nothing") {
  fixture f;
  const auto orphan = f.steps.computed(f.compute_of({{1, {0}, 1, 1}}).number);
  f.order({});
  CHECK_FALSE(f.steps.acknowledged(*orphan));
  f.order({{2, {0}, 1, 1}});
  const auto step = f.compute();
  CHECK_FALSE(f.steps.not_applied(*orphan));
  CHECK(f.steps.computed(step.number));
}

TEST_CASE("where_the_lag_is_bounded_nothing_is_pulled_ahead") {
  for (const auto& sync : {bsp(), ssp(3)}) {
    fixture f{{2, 2}, sync};
    f.order({{1, {0}, 9, 1}});
    f.pull();
    CHECK_FALSE(f.steps.next_pull());
  }
}

TEST_CASE("bsp_pulls_for_one_step_and_lets_a_smaller_batch_pass") {
  fixture f{{2, 1}, bsp()};
  f.order({{1, {5}, 2, 1}});
  const auto step = f.pull();
  CHECK_FALSE(f.steps.next_pull());
  CHECK(f.steps.pulled(step.number));
  f.order({{1, {5}, 2, 1}, {2, {0}, 1, 1}});
  CHECK_FALSE(f.steps.next_compute());
  CHECK(f.pull().batch.value == 0);
}

TEST_CASE("bsp_lets_a_gradient_that_is_being_computed_go_on") {
  fixture f{{0, 1}, bsp()};
  f.order({{1, {5}, 2, 1}});
  const auto step = f.compute();
  f.order({{1, {5}, 2, 1}, {2, {0}, 1, 1}});
  CHECK(f.steps.computed(step.number));
}

TEST_CASE("nothing_is_begun_before_the_admission") {
  fixture f;
  desired_worker what;
  what.leases = {{1, {0}, 9, 1}};
  f.steps.reconcile(what);
  CHECK_FALSE(f.steps.next_pull());
}

TEST_CASE("in_bsp_a_pull_shares_the_request_of_the_push_of_the_clock_before_only") {
  // A clock has two slots: the push is of clock 1.
  for (const auto& [next, shares] : {std::pair{3, false}, {4, true}, {5, true}, {6, false}}) {
    CAPTURE(next);
    fixture f{{}, bsp()};
    const auto first =
      f.compute_of({{1, {2}, 1, 1}, {2, {static_cast<std::uint64_t>(next)}, 1, 1}});
    const auto pushed = f.steps.computed(first.number);
    REQUIRE(pushed);
    CHECK(f.steps.next_pull_with(*pushed).has_value() == shares);
    CHECK(f.steps.next_pull().has_value() == !shares);
  }
}

} // namespace step_planner_test
