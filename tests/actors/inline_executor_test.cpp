#include "actors/inline_executor.hpp"
#include "tests/actors/actor_fixture.hpp"

#include "caf/event_based_actor.hpp"
#include "caf/scoped_actor.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace inline_executor_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

struct fixture {
  /// Returns an actor that records numbers and the thread it runs on.
  caf::actor recorder(caf::actor next = {}) {
    return system.spawn([this, next](caf::event_based_actor* self) -> caf::behavior {
      return {[=, this](int x) {
        seen.push_back(x);
        threads.push_back(std::this_thread::get_id());
        if (next)
          self->send(next, x + 100);
      }};
    });
  }
  bool all_here() const {
    return std::all_of(threads.begin(), threads.end(),
                       [](std::thread::id x) { return x == std::this_thread::get_id(); });
  }

  actor_config config;
  caf::actor_system system{config};
  std::vector<int> seen; ///< Written by actors that run one after the other.
  std::vector<std::thread::id> threads;
};

/// Blocks until the launch of `who` is over: then the scheduler does not run it.
void await_idle(caf::actor_system& system, const caf::actor& who) {
  caf::scoped_actor self{system};
  self->request(who, 10s, 0).receive([] {}, [](const caf::error&) {});
}

} // namespace

TEST_CASE("actors_run_on_the_thread_of_their_executor_and_so_do_those_they_send_to") {
  fixture f;
  const auto second = f.recorder();
  const auto first = f.recorder(second);
  await_idle(f.system, second);
  await_idle(f.system, first);
  std::this_thread::sleep_for(50ms);
  f.seen.clear();
  f.threads.clear();
  inline_executor here{f.system, 100};
  for (int i = 1; i <= 3; ++i)
    here.send(first, i);
  CHECK(f.seen.empty());
  here.run();
  std::sort(f.seen.begin(), f.seen.end());
  CHECK(f.seen == std::vector<int>{1, 2, 3, 101, 102, 103});
  CHECK(f.all_here());
}

TEST_CASE("beyond_its_turns_an_executor_leaves_the_rest_to_the_scheduler") {
  fixture f;
  std::atomic<int> handled = 0;
  const auto counter = f.system.spawn(
    [&](caf::event_based_actor*) -> caf::behavior { return {[&](int) { ++handled; }}; });
  {
    inline_executor here{f.system, 1};
    for (int i = 0; i < 1000; ++i)
      here.send(counter, i);
    here.run();
  }
  for (int i = 0; i < 1000 && handled < 1000; ++i)
    std::this_thread::sleep_for(10ms);
  CHECK(handled == 1000);
}

TEST_CASE("what_was_sent_on_an_executor_that_ends_is_handled_all_the_same") {
  fixture f;
  std::atomic<int> handled = 0;
  const auto counter = f.system.spawn(
    [&](caf::event_based_actor*) -> caf::behavior { return {[&](int) { ++handled; }}; });
  {
    inline_executor here{f.system, 1};
    here.send(counter, 1);
  }
  for (int i = 0; i < 1000 && handled < 1; ++i)
    std::this_thread::sleep_for(10ms);
  CHECK(handled == 1);
}

} // namespace inline_executor_test
