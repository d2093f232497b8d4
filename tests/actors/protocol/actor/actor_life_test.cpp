#include "actors/protocol/actor/actor_life.hpp"

#include "doctest/doctest.h"

namespace troupe::actor_life_test {

using namespace std::chrono_literals;

constexpr time_point begun = 100s;
constexpr bool trains = false, winds_down = true, stops = true;

TEST_SUITE_BEGIN("actor_life");

TEST_CASE("stop is called once when all batches are applied, and the member ends when it is told") {
  actor_life one{begun, true};
  CHECK(one.desired(trains, false, begun) == actor_steps{});
  CHECK(one.desired(winds_down, false, begun) == actor_steps{.calls_stop = true});
  CHECK(one.desired(winds_down, false, begun) == actor_steps{});
  CHECK(one.stopped() == actor_steps{.reports = true});
  CHECK(one.has_stopped());
  CHECK(one.desired(winds_down, stops, begun) == actor_steps{.ends = true});
  CHECK(one.desired(winds_down, stops, begun) == actor_steps{});
}

TEST_CASE("a member that is stopped ends when stop has returned") {
  actor_life one{begun, true};
  CHECK(one.desired(trains, stops, begun) == actor_steps{.calls_stop = true});
  CHECK(one.tick(begun + 4999ms) == actor_steps{.has_worked = true});
  CHECK(one.stopped() == actor_steps{.reports = true, .ends = true});
  CHECK(one.tick(begun + 10s) == actor_steps{});
}

TEST_CASE("a stop that does not return ends after 5 s") {
  actor_life one{begun, true};
  one.desired(winds_down, false, begun);
  CHECK_FALSE(one.tick(begun + 10s).ends); // The job has not ended, and waits.
  CHECK(one.desired(winds_down, stops, begun + 10s) == actor_steps{});
  CHECK(one.tick(begun + 10s) == actor_steps{.ends = true});
  CHECK(one.stopped() == actor_steps{.reports = true});
}

TEST_CASE("an actor that wound down ends if the job trains again") {
  actor_life one{begun, true};
  one.desired(winds_down, false, begun);
  CHECK(one.desired(trains, false, begun) == actor_steps{.ends = true});
}

TEST_CASE("a question that failed is asked again, unless the failure stays or the actor stops") {
  actor_life one{begun, true};
  CHECK(one.question_failed({errc::peer_lost, "gone"}) == actor_steps{});
  CHECK(one.tick(begun) == actor_steps{.asks_again = true});
  CHECK(one.tick(begun) == actor_steps{});
  one.question_failed({errc::peer_lost, "gone"});
  one.desired(winds_down, false, begun);
  CHECK(one.tick(begun) == actor_steps{});
  CHECK(one.question_failed({errc::contract_broken, "wrong"}) == actor_steps{.reports = true});
  CHECK(one.failure_told()->text == "wrong");
}

TEST_CASE("the first failure counts, and one that failed has done no work") {
  actor_life one{begun, true};
  CHECK(one.tick(begun + 999ms) == actor_steps{});
  CHECK(one.tick(begun + 1s) == actor_steps{.has_worked = true});
  CHECK(one.failed({errc::job_failed, "first"}) == actor_steps{.reports = true});
  one.failed({errc::job_failed, "second"});
  CHECK(one.failure_told()->text == "first");
  CHECK(one.tick(begun + 2s) == actor_steps{});
}

TEST_CASE("without a thread nothing has to stop") {
  actor_life one{begun, false};
  CHECK(one.desired(winds_down, false, begun) == actor_steps{});
  CHECK(one.desired(winds_down, stops, begun) == actor_steps{.ends = true});
}

TEST_SUITE_END();

} // namespace troupe::actor_life_test
