// Tests the launcher's actors: the observer, its mailbox, and the evaluator.
#include "actors/roles/observer/evaluator_actor.hpp"
#include "actors/roles/observer/observer_actor.hpp"
#include "tests/actors/actor_fixture.hpp"
#include "tests/actors/shard_fixture.hpp"

#include "doctest/doctest.h"

#include <atomic>
#include <future>
#include <stdexcept>
#include <thread>

namespace observer_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

class sum_of_parameters : public evaluator {
public:
  evaluation evaluate(const_tensors parameters) override {
    double sum = 0;
    for (const float x : parameters[0])
      sum += x;
    if (sum < 0)
      throw std::runtime_error{"a negative sum"};
    return {.loss = sum, .accuracy = 0.5, .measures = {{"sum", sum}}};
  }
};

struct slow_life {
  std::atomic<bool> begun = false;
  std::atomic<bool> may_end = false;
  std::atomic<bool> over = false;
};

/// Computes until it may end, and somewhat longer.
class slow_evaluator : public evaluator {
public:
  explicit slow_evaluator(slow_life& life) : life_(life) {}
  ~slow_evaluator() override { life_.over = true; }
  evaluation evaluate(const_tensors) override {
    life_.begun = true;
    while (!life_.may_end)
      std::this_thread::yield();
    for (int i = 0; i < 1000; ++i)
      std::this_thread::yield();
    return {};
  }

private:
  slow_life& life_;
};

/// Evaluates once, over a kv that answers with `value` everywhere or fails.
evaluation_message evaluate_once(evaluator_factory make, std::variant<float, failure> value) {
  actor_config config;
  caf::actor_system system{config};
  const auto source = system.spawn([=](kv::pointer) -> kv::behavior_type {
    return {[=](const request& asked) -> caf::result<reply> {
      if (const auto* why = std::get_if<failure>(&value))
        return to_caf(*why);
      CHECK(asked.pull->latest);
      pull_reply answer;
      for (const auto& where : asked.pull->ranges) {
        const auto numbers = buffer_pool{}.floats(where.count);
        std::fill_n(numbers.get(), where.count, std::get<float>(value));
        answer.pieces.push_back({where, numbers});
      }
      return reply{{}, answer};
    }};
  });
  std::promise<evaluation_message> promised;
  std::vector<named_evaluator> nodes;
  if (make)
    nodes.push_back({"test", std::move(make)});
  const auto evaluator =
    spawn_evaluator(system, job_of({asp()}), source, std::move(nodes),
                    [&](evaluation_message x) { promised.set_value(std::move(x)); });
  caf::anon_send(evaluator, evaluate_atom_v, std::uint64_t{9});
  auto verdict = promised.get_future().get();
  caf::anon_send_exit(evaluator, caf::exit_reason::user_shutdown); // Otherwise its timer holds it.
  return verdict;
}

const evaluator_factory make_sum = [] { return std::make_unique<sum_of_parameters>(); };

} // namespace

TEST_CASE("the_observer_reports_what_the_mailbox_says") {
  actor_fixture f;
  fake_coordinator coordinator{f};
  fake_kv values{f};
  auto mailbox = std::make_shared<observer_mailbox>();
  const auto observer = f.owned(spawn_observer(f.system, {role::observer, 0, {3}}, 8, mailbox,
                                               values.handle(), coordinator.connector()));
  CHECK(coordinator.reports().size() == 1);
  CHECK(coordinator.reports()[0].job == 8);
  mailbox->update([](observer_status& report) { report.done = true; });
  f.send(observer, tick_atom_v);
  CHECK(coordinator.reports().size() == 2);
  CHECK(coordinator.last<observer_status>().done);
  f.advance(500ms);
  CHECK(coordinator.reports().size() == 7);
}

TEST_CASE("the_observer_publishes_desired_states_and_passes_on_views") {
  actor_fixture f;
  fake_coordinator coordinator{f};
  fake_kv values{f};
  auto mailbox = std::make_shared<observer_mailbox>();
  const auto observer = f.owned(spawn_observer(f.system, {role::observer, 0, {3}}, 8, mailbox,
                                               values.handle(), coordinator.connector()));
  CHECK_FALSE(mailbox->latest());
  job_status what;
  what.batches_done = 5;
  what.view.config = {2};
  coordinator.order(observer, what);
  coordinator.order(observer, what);
  CHECK(values.views().size() == 1);
  REQUIRE(mailbox->latest());
  CHECK(mailbox->latest()->desired_state.batches_done == 5);
  CHECK(mailbox->latest()->term == 1);
  CHECK_FALSE(mailbox->latest()->stop);
  coordinator.sequence = 0;
  what.batches_done = 4;
  coordinator.order(observer, what); // This message was overtaken.
  CHECK(mailbox->latest()->desired_state.batches_done == 5);
}

TEST_CASE("the_mailbox_may_be_used_by_many_threads") {
  observer_mailbox mailbox;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 2; ++thread)
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        mailbox.update([](observer_status& report) { report.deaths.emplace_back(); });
        mailbox.publish({});
        (void)mailbox.latest();
      }
    });
  for (auto& thread : threads)
    thread.join();
  CHECK(mailbox.report().deaths.size() == 2000);
}

TEST_CASE("an_evaluator_evaluates_the_present_parameters") {
  const auto verdict = evaluate_once(make_sum, 2.0f);
  CHECK(verdict.number == 9);
  CHECK_FALSE(verdict.failed);
  REQUIRE(verdict.found);
  CHECK(verdict.found->loss == 8);
  CHECK(verdict.found->measures == std::vector<measure>{{"sum", 8}});
  CHECK(verdict.parameters == std::vector<std::vector<float>>{{2, 2, 2, 2}});
}

TEST_CASE("without_an_evaluator_the_evaluator_still_fetches_the_parameters") {
  const auto verdict = evaluate_once({}, 2.0f);
  CHECK_FALSE(verdict.found);
  CHECK_FALSE(verdict.failed);
  CHECK(verdict.parameters.at(0).size() == 4);
}

TEST_CASE("an_evaluator_that_is_busy_has_ended_when_end_evaluator_returns") {
  slow_life life;
  actor_config config;
  caf::actor_system system{config};
  system.await_actors_before_shutdown(false); // The launcher does so too.
  const auto source = system.spawn([](kv::pointer self) -> kv::behavior_type {
    return {[self, open = std::vector<caf::typed_response_promise<reply>>{}](
              const request&) mutable -> caf::result<reply> {
      open.push_back(self->make_response_promise<reply>()); // The second pull gets no answer.
      if (open.size() == 1)
        open.front().deliver(reply{{}, pull_reply{}});
      return open.back();
    }};
  });
  const auto evaluator = spawn_evaluator(
    system, job_of({asp()}), source,
    {{"test", [&] { return std::make_unique<slow_evaluator>(life); }}}, [](evaluation_message) {});
  caf::anon_send(evaluator, evaluate_atom_v, std::uint64_t{1});
  caf::anon_send(evaluator, evaluate_atom_v, std::uint64_t{2}); // Its pull stays open.
  while (!life.begun)
    std::this_thread::yield();
  life.may_end = true;
  end_evaluator(system, evaluator);
  CHECK(life.over);
  // The source holds the open request's promise. The rest of the test is that the system ends then.
  caf::anon_send_exit(source, caf::exit_reason::user_shutdown);
}

TEST_CASE("an_evaluation_that_fails_says_why") {
  CHECK(evaluate_once(make_sum, -1.0f).failed.value().text == "a negative sum");
  CHECK(evaluate_once(make_sum, failure{errc::shape_mismatch, "no"}).failed.value().text == "no");
  CHECK(
    evaluate_once([]() -> std::unique_ptr<evaluator> { throw std::runtime_error{"no data"}; }, 1.0f)
      .failed.value()
      .text
    == "no data");
  CHECK(evaluate_once([] { return nullptr; }, 1.0f).failed.value().text
        == "the graph's evaluator factory made no evaluator");
  CHECK(evaluate_once([]() -> std::unique_ptr<evaluator> { throw 7; }, 1.0f).failed.value().text
        == "the program threw a value of type int, which is no std::exception");
  const failure silent{errc::timed_out, ""};
  CHECK(evaluate_once(make_sum, silent).failed == silent);
}

} // namespace observer_test
