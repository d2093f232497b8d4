#include "actors/protocol/session/restart_rules.hpp"

#include "doctest/doctest.h"

#include <vector>

namespace restart_rules_test {

using namespace troupe;
using namespace std::chrono_literals;

namespace {

/// A process that lives for some time and ends again and again.
struct fixture {
  explicit fixture(supervision limits = {}) : rules(limits) {}

  restart_decision live(std::chrono::nanoseconds life, end_cause why, bool works = false) {
    rules.started(now);
    if (works)
      rules.worked();
    now += life;
    return rules.ended(why, now);
  }

  std::chrono::nanoseconds now{0};
  restart_rules rules;
};

} // namespace

TEST_CASE("ends before any work are counted in a row whatever the cause and the length of life") {
  for (const auto why : {end_cause::sigkill, end_cause::crash})
    for (const std::chrono::nanoseconds life : {0s, 3s, 3600s}) {
      CAPTURE(life.count());
      fixture f;
      for (const auto pause : {100ms, 200ms, 400ms, 800ms, 1600ms}) {
        const auto next = f.live(life, why);
        CHECK(next.pause == pause);
        CHECK_FALSE(next.too_often);
      }
      CHECK(f.live(life, why).too_often.value() == "6 times in a row before it had done any work");
    }
}

TEST_CASE("the pause has a limit") {
  fixture f{{.crashes_max = 1000}};
  for (int i = 0; i < 100; ++i)
    CHECK(f.live(1s, end_cause::sigkill).pause <= 5s);
  CHECK(f.live(1s, end_cause::sigkill).pause == 5s);
}

TEST_CASE("an end after work begins a new row and is followed by a start at once") {
  fixture f;
  for (int row = 0; row < 10; ++row) {
    for (int i = 0; i < 5; ++i)
      CHECK_FALSE(f.live(3s, end_cause::sigkill).too_often);
    const auto next = f.live(3s, end_cause::sigkill, true);
    CHECK(next.pause == 0s);
    CHECK_FALSE(next.too_often);
  }
}

TEST_CASE("work of an earlier life does not count") {
  fixture f{{.crashes_max = 2}};
  CHECK_FALSE(f.live(3s, end_cause::sigkill, true).too_often);
  CHECK_FALSE(f.live(3s, end_cause::sigkill).too_often);
  CHECK(f.live(3s, end_cause::sigkill).too_often);
}

TEST_CASE("crashes after work are too many within the window and kills from outside are not") {
  fixture f{{.crashes_max = 3, .window = 60s}};
  CHECK_FALSE(f.live(20s, end_cause::crash, true).too_often);
  CHECK_FALSE(f.live(20s, end_cause::crash, true).too_often);
  for (int i = 0; i < 20; ++i)
    CHECK_FALSE(f.live(1s, end_cause::sigkill, true).too_often);
  CHECK(f.live(20s, end_cause::crash, true).too_often.value() == "3 times within 60 s");
  fixture apart{{.crashes_max = 3, .window = 60s}};
  for (int i = 0; i < 20; ++i)
    CHECK_FALSE(apart.live(31s, end_cause::crash, true).too_often);
}

TEST_CASE("crashes with and without work share the window") {
  fixture f{{.crashes_max = 4}};
  CHECK_FALSE(f.live(1s, end_cause::crash).too_often);
  CHECK_FALSE(f.live(1s, end_cause::crash, true).too_often);
  CHECK_FALSE(f.live(1s, end_cause::crash).too_often);
  CHECK(f.live(1s, end_cause::crash, true).too_often.value() == "4 times within 120 s");
}

TEST_CASE("ends that the launcher or the coordinator brings about change nothing") {
  for (const auto why : {end_cause::killed, end_cause::deposed}) {
    fixture f{{.crashes_max = 2}};
    CHECK(f.live(1s, end_cause::sigkill).pause == 100ms);
    for (int i = 0; i < 50; ++i) {
      const auto next = f.live(0s, why);
      CHECK(next.pause == 0s);
      CHECK_FALSE(next.too_often);
    }
    CHECK(f.live(1s, end_cause::sigkill).too_often);
  }
  fixture evicted;
  for (int i = 0; i < 50; ++i) {
    const auto next = evicted.live(5s, end_cause::dismissed);
    CHECK(next.pause == 1s);
    CHECK_FALSE(next.too_often);
  }
}

TEST_CASE("a process that is told to end at once again and again is not started again") {
  fixture f;
  for (int i = 0; i < 5; ++i)
    CHECK_FALSE(f.live(1s, end_cause::dismissed).too_often);
  CHECK(f.live(1s, end_cause::dismissed).too_often.value() == "6 times at once, as it was told to");
}

TEST_CASE("starts that fail count as ends without work") {
  fixture f{{.crashes_max = 3}};
  CHECK(f.live(1s, end_cause::sigkill).pause == 100ms);
  CHECK(f.rules.start_failed().pause == 200ms);
  CHECK(f.rules.start_failed().too_often);
}

} // namespace restart_rules_test
