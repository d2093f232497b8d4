#include "actors/protocol/worker/fault_stage.hpp"
#include "actors/protocol/worker/stage_guard.hpp"

#include "doctest/doctest.h"

#include <string>
#include <variant>
#include <vector>

namespace troupe::fault_stage_test {

namespace {

using namespace std::chrono_literals;
using lines = std::vector<std::string>;

/// Runs the stage behind its guard, whose breaches are lines too.
struct fixture {
  explicit fixture(const fault_rates& rates) : guard("faults", make_fault_stage(rates, 1)) {}

  template <class Event>
  lines decide(Event event) {
    guard_effects effects;
    event(effects);
    lines all;
    for (const auto& effect : effects)
      all.push_back(std::visit([](const auto& x) { return text(x); }, effect));
    return all;
  }
  lines push(std::uint64_t token) {
    request what;
    what.push.emplace().step.batch = {token};
    return decide([&](auto& effects) { guard.ask({token}, std::move(what), now, effects); });
  }
  lines pull(std::uint64_t token) {
    request what;
    what.pull.emplace().step.batch = {token};
    return decide([&](auto& effects) { guard.ask({token}, std::move(what), now, effects); });
  }
  lines answer_push(std::uint64_t number) {
    return decide([&](auto& effects) {
      guard.answered({number}, {push_reply{}, std::nullopt}, now, effects);
    });
  }
  lines tick(std::chrono::nanoseconds later) {
    now += later;
    return decide([&](auto& effects) { guard.tick(now, effects); });
  }

  static std::string text(const forward_effect& x) {
    return "forward " + std::to_string(x.number.value) + (x.what.push ? " push" : " pull");
  }
  static std::string text(const answered_effect& x) {
    return "answer " + std::to_string(x.request.value);
  }
  static std::string text(const failed_effect& x) {
    return "fail " + std::to_string(x.request.value) + " " + x.why.text;
  }
  static std::string text(const count_effect& x) { return "count " + x.name; }
  static std::string text(const log_effect& x) { return "log " + x.line; }
  static std::string text(const warning_effect& x) { return "warn " + x.line; }

  stage_guard guard;
  time_point now{1h};
};

} // namespace

TEST_CASE("a stage without faults passes all on") {
  fixture f{{}};
  CHECK(f.push(1) == lines{"forward 1 push"});
  CHECK(f.answer_push(1) == lines{"answer 1"});
  CHECK(f.pull(2) == lines{"forward 2 pull"});
}

TEST_CASE("a lost push never reaches the store, and a pull is never lost") {
  fixture f{{.lost = 1}};
  CHECK(f.push(1) == lines{"count lost", "fail 1 the push was lost on purpose"});
  CHECK(f.pull(2) == lines{"forward 1 pull"});
}

TEST_CASE("a push whose receipt is lost was applied, and its worker hears of a failure") {
  fixture f{{.repeated = 1}};
  CHECK(f.push(1) == lines{"forward 1 push"});
  CHECK(f.answer_push(1) == lines{"count repeated", "fail 1 the receipt was lost on purpose"});
}

TEST_CASE("a delay holds each request for its time, in order") {
  fixture f{{.delay = 5ms}};
  CHECK(f.push(1).empty());
  CHECK(f.tick(2ms).empty());
  CHECK(f.pull(2).empty());
  CHECK(f.guard.next_tick() == time_point{1h + 5ms});
  CHECK(f.tick(3ms) == lines{"forward 1 push"});
  CHECK(f.tick(1ms).empty());
  CHECK(f.tick(1ms) == lines{"forward 2 pull"});
  CHECK_FALSE(f.guard.next_tick());
}

TEST_CASE("shares of pushes are lost and repeated") {
  fixture f{{.lost = 0.1, .repeated = 0.1}};
  int lost = 0, repeated = 0;
  std::uint64_t forwards = 0;
  for (std::uint64_t token = 1; token <= 1000; ++token)
    if (f.push(token).front() == "count lost")
      ++lost;
    else if (f.answer_push(++forwards).front() == "count repeated")
      ++repeated;
  CHECK(lost > 50);
  CHECK(lost < 150);
  CHECK(repeated > 50);
  CHECK(repeated < 150);
}

} // namespace troupe::fault_stage_test
