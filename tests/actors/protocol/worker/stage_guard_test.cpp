#include "actors/protocol/worker/stage_guard.hpp"

#include "doctest/doctest.h"

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace troupe::stage_guard_test {

namespace {

using namespace std::chrono_literals;
using lines = std::vector<std::string>;

step_header step(std::uint32_t worker, std::uint64_t batch) {
  return {{worker}, {7}, {1}, {batch}, batch};
}

push_request push_of(std::uint32_t worker, std::uint64_t batch) {
  push_request what;
  what.step = step(worker, batch);
  return what;
}

request push(std::uint32_t worker, std::uint64_t batch) {
  return {push_of(worker, batch), std::nullopt};
}

request pull(std::uint32_t worker, std::uint64_t batch) {
  request what;
  what.pull = pull_request{};
  what.pull->step = step(worker, batch);
  return what;
}

request both(std::uint32_t worker, std::uint64_t pushed, std::uint64_t pulled) {
  auto what = push(worker, pushed);
  what.pull = pull(worker, pulled).pull;
  return what;
}

reply done(bool pushed, bool pulled) {
  reply what;
  if (pushed)
    what.pushed = push_reply{};
  if (pulled)
    what.pulled = pull_reply{};
  return what;
}

/// Does what the test says with each event. Keeps requests and the last effects.
struct scripted final : stage_decider {
  using handler = std::function<void(request_token, request, stage_effects&)>;
  using outcome_handler = std::function<void(forward_id, stage_effects&)>;

  void ask(request_token from, request what, time_point, stage_effects& effects) override {
    if (on_ask)
      on_ask(from, std::move(what), effects);
  }
  void answered(forward_id number, reply, time_point, stage_effects& effects) override {
    if (on_answered)
      on_answered(number, effects);
  }
  void failed(forward_id number, const failure&, time_point, stage_effects& effects) override {
    ++failures;
    if (on_failed)
      on_failed(number, effects);
  }
  void tick(time_point, stage_effects& effects) override {
    if (on_tick)
      on_tick(effects);
  }
  std::optional<time_point> next_tick() const override {
    return on_next_tick ? on_next_tick() : std::nullopt;
  }

  handler on_ask;
  outcome_handler on_answered, on_failed;
  std::function<void(stage_effects&)> on_tick;
  std::function<std::optional<time_point>()> on_next_tick;
  int failures = 0;
};

struct fixture {
  fixture() : fixture(std::make_unique<scripted>()) {}
  explicit fixture(std::unique_ptr<scripted> made)
      : stage(made.get()), guard("noise", std::move(made), true) {}

  template <class Event>
  lines decide(Event event) {
    guard_effects effects;
    event(effects);
    lines all;
    for (const auto& effect : effects)
      all.push_back(std::visit([](const auto& x) { return text(x); }, effect));
    return all;
  }
  lines ask(std::uint64_t token, request what) {
    return decide([&](auto& effects) { guard.ask({token}, std::move(what), now, effects); });
  }
  lines answer(std::uint64_t number, bool pushed = true, bool pulled = false) {
    return decide(
      [&](auto& effects) { guard.answered({number}, done(pushed, pulled), now, effects); });
  }
  lines fail(std::uint64_t number) {
    return decide([&](auto& effects) {
      guard.failed({number}, {errc::rolled_back, "back"}, now, effects);
    });
  }
  lines tick(std::chrono::nanoseconds later) {
    now += later;
    return decide([&](auto& effects) { guard.tick(now, effects); });
  }

  static std::string text(const forward_effect& x) {
    auto all = "forward " + std::to_string(x.number.value);
    if (x.what.push)
      for (const auto& each : x.what.push->steps())
        all += " push " + std::to_string(each.batch.value);
    if (x.what.pull)
      all += " pull " + std::to_string(x.what.pull->step.batch.value);
    return all;
  }
  static std::string text(const answered_effect& x) {
    return "answer " + std::to_string(x.request.value);
  }
  static std::string text(const failed_effect& x) {
    return "fail " + std::to_string(x.request.value) + " " + to_string(x.why.code);
  }
  static std::string text(const count_effect& x) {
    return "count " + x.name + " " + std::to_string(x.count);
  }
  static std::string text(const log_effect& x) { return "log " + x.line; }
  static std::string text(const warning_effect& x) { return "warn " + x.line; }

  scripted* stage;
  stage_guard guard;
  time_point now{100s};
};

/// Returns the effects of a breach while these requests are open.
lines breach(const std::string& what, const std::vector<std::uint64_t>& open) {
  lines all{"warn stage 'noise' " + what};
  for (const auto token : open)
    all.push_back("fail " + std::to_string(token) + " contract_broken");
  return all;
}

/// Lets each request pass, and each answer.
void pass(fixture& f) {
  f.stage->on_ask = [](request_token, request what, stage_effects& effects) {
    effects.forward(std::move(what));
  };
}

} // namespace

TEST_CASE("requests and answers pass through a stage that changes nothing") {
  stage_guard guard{"plain", std::make_unique<pass_through>()};
  guard_effects effects;
  guard.ask({1}, both(0, 1, 2), 0s, effects);
  guard.ask({2}, pull(1, 3), 0s, effects);
  REQUIRE(effects.size() == 2);
  CHECK(fixture::text(std::get<forward_effect>(effects[0])) == "forward 1 push 1 pull 2");
  CHECK(fixture::text(std::get<forward_effect>(effects[1])) == "forward 2 pull 3");
  effects.clear();
  guard.failed({2}, {errc::timed_out, "late"}, 0s, effects);
  guard.answered({1}, done(true, true), 0s, effects);
  REQUIRE(effects.size() == 2);
  CHECK(std::get<failed_effect>(effects[0]).request == request_token{2});
  CHECK(std::get<answered_effect>(effects[1]).request == request_token{1});
  CHECK(guard.is_empty());
}

TEST_CASE("what a stage counts and logs is passed on") {
  fixture f;
  f.stage->on_ask = [](request_token from, request, stage_effects& effects) {
    effects.count("dropped", 3);
    effects.log("a line");
    effects.refuse(from, {errc::not_ready, "later"});
  };
  CHECK(f.ask(1, push(0, 1)) == lines{"count dropped 3", "log a line", "fail 1 not_ready"});
}

TEST_CASE("a refusal without a text names the stage and the error") {
  fixture f;
  f.stage->on_ask = [](request_token from, request, stage_effects& effects) {
    effects.refuse(from, {errc::shape_mismatch, ""});
  };
  guard_effects effects;
  f.guard.ask({1}, push(0, 1), f.now, effects);
  REQUIRE(effects.size() == 1);
  CHECK(std::get<failed_effect>(effects[0]).why
        == failure{errc::shape_mismatch,
                   "stage 'noise' refused a request without a text (shape_mismatch)"});
}

TEST_CASE("a stage may add up batches, and send them alone after a refusal") {
  fixture f;
  std::vector<push_request> held;
  f.stage->on_ask = [&](request_token, request what, stage_effects& effects) {
    held.push_back(*what.push);
    if (held.size() < 2)
      return;
    auto sum = held[0];
    sum.others = {held[1].step};
    effects.forward({sum, std::nullopt});
  };
  f.stage->on_failed = [&](forward_id number, stage_effects& effects) {
    if (number.value == 1)
      for (const auto& each : held)
        effects.forward({each, std::nullopt});
  };
  f.stage->on_answered = [&](forward_id number, stage_effects& effects) {
    effects.answer({number.value - 1}, done(true, false));
  };
  CHECK(f.ask(1, push(0, 5)).empty());
  CHECK(f.ask(2, push(1, 6)) == lines{"forward 1 push 5 push 6"});
  CHECK(f.fail(1) == lines{"forward 2 push 5", "forward 3 push 6"});
  CHECK(f.answer(2) == lines{"answer 1"});
  CHECK(f.answer(3) == lines{"answer 2"});
}

TEST_CASE("a batch that comes again while the stage has it still is two requests") {
  fixture f;
  std::vector<push_request> held;
  f.stage->on_ask = [&](request_token, request what, stage_effects&) {
    held.push_back(*what.push);
  };
  f.stage->on_tick = [&](stage_effects& effects) {
    for (const auto& each : std::exchange(held, {}))
      effects.forward({each, std::nullopt});
  };
  f.ask(1, push(0, 5));
  f.ask(2, push(0, 5)); // Its worker has begun anew, as after a rollback.
  CHECK(f.tick(1s) == lines{"forward 1 push 5", "forward 2 push 5"});
  f.stage->on_failed = [](forward_id, stage_effects& effects) {
    effects.refuse({1}, {errc::rolled_back, "back"});
  };
  CHECK(f.fail(1) == lines{"fail 1 rolled_back"});
  f.stage->on_answered = [](forward_id, stage_effects& effects) {
    effects.answer({2}, done(true, false));
  };
  CHECK(f.answer(2) == lines{"answer 2"});
}

TEST_CASE("a push that lost its tables is named") {
  fixture f;
  f.stage->on_ask = [](request_token, request what, stage_effects& effects) {
    what.push->tables.clear();
    effects.forward(std::move(what));
  };
  auto what = push(0, 5);
  what.push->tables = {{0}, {1}};
  CHECK(f.ask(1, what)
        == breach("forwarded batch 5 of worker 0 with other tables than those of its push", {1}));
}

TEST_CASE("a batch that is swallowed is named") {
  fixture f;
  f.stage->on_ask = [](request_token from, request, stage_effects& effects) {
    effects.answer(from, done(true, false));
  };
  CHECK(f.ask(1, push(2, 7)) == breach("answered batch 7 of worker 2, which was not applied", {1}));
  CHECK(f.ask(2, push(2, 8)) == lines{"fail 2 contract_broken"});
}

TEST_CASE("a batch that is answered before it was applied is named") {
  fixture f;
  f.stage->on_ask = [](request_token from, request what, stage_effects& effects) {
    effects.forward(std::move(what));
    effects.answer(from, done(true, false));
  };
  auto expected = breach("answered batch 7 of worker 2, which was not applied", {1});
  expected.insert(expected.begin(), "forward 1 push 7");
  CHECK(f.ask(1, push(2, 7)) == expected);
}

TEST_CASE("a batch that is forwarded twice is named") {
  fixture f;
  pass(f);
  f.stage->on_tick = [](stage_effects& effects) { effects.forward(push(2, 7)); };
  f.ask(1, push(2, 7));
  SUBCASE("while the first is under way") {
    CHECK(f.tick(1s) == breach("forwarded batch 7 of worker 2 twice", {1}));
  }
  SUBCASE("after the first was applied") {
    CHECK(f.answer(1).empty());
    CHECK(f.tick(1s) == breach("forwarded batch 7 of worker 2 twice", {1}));
  }
  SUBCASE("after the first was refused it may be") {
    CHECK(f.fail(1).empty());
    CHECK(f.tick(1s) == lines{"forward 2 push 7"});
  }
}

TEST_CASE("a batch that was never asked for is named") {
  fixture f;
  f.stage->on_ask = [](request_token, request what, stage_effects& effects) {
    what.push->step.batch.value += 100;
    effects.forward(std::move(what));
  };
  CHECK(f.ask(1, push(2, 7))
        == breach("forwarded batch 107 of worker 2, which it does not hold", {1}));
}

TEST_CASE("a batch of another worker is named") {
  fixture f;
  f.stage->on_ask = [](request_token, request what, stage_effects& effects) {
    what.push->step.worker.value = 3;
    effects.forward(std::move(what));
  };
  CHECK(f.ask(1, push(2, 7))
        == breach("forwarded batch 7 of worker 3, which it does not hold", {1}));
}

TEST_CASE("batches that change their order are named") {
  fixture f;
  std::vector<request> held;
  f.stage->on_ask = [&](request_token, request what, stage_effects& effects) {
    held.push_back(std::move(what));
    if (held.size() == 2)
      effects.forward(held[1]);
  };
  const std::string fault =
    "kept back batch 7 of worker 2 and forwarded a later request of this worker";
  f.ask(1, push(2, 7));
  SUBCASE("two pushes") { CHECK(f.ask(2, push(2, 8)) == breach(fault, {1, 2})); }
  SUBCASE("a pull") { CHECK(f.ask(2, pull(2, 8)) == breach(fault, {1, 2})); }
  SUBCASE("a push of another worker may be sent") {
    CHECK(f.ask(2, push(3, 8)) == lines{"forward 1 push 8"});
  }
}

TEST_CASE("a pull may not leave before the push that came with it") {
  fixture f;
  f.stage->on_ask = [&](request_token, request what, stage_effects& effects) {
    what.push.reset();
    effects.forward(std::move(what));
  };
  CHECK(
    f.ask(1, both(2, 7, 8))
    == breach("kept back batch 7 of worker 2 and forwarded a later request of this worker", {1}));
}

TEST_CASE("an answer has all that was asked for") {
  fixture f;
  pass(f);
  f.ask(1, both(2, 7, 8));
  f.ask(2, pull(3, 9));
  SUBCASE("a receipt") {
    f.stage->on_answered = [](forward_id, stage_effects& effects) {
      effects.answer({1}, done(false, true));
    };
    CHECK(f.answer(1, true, true)
          == breach("answered batch 7 of worker 2 without a receipt", {1, 2}));
  }
  SUBCASE("values") {
    f.stage->on_answered = [](forward_id, stage_effects& effects) {
      effects.answer({1}, done(true, false));
    };
    CHECK(f.answer(1, true, true)
          == breach("answered the pull for batch 8 of worker 2 without values", {1, 2}));
  }
}

TEST_CASE("a stage that throws is named, and every request fails") {
  fixture f;
  pass(f);
  f.ask(1, push(0, 1));
  f.stage->on_ask = [](request_token, request, stage_effects&) {
    throw std::runtime_error{"no such table"};
  };
  CHECK(f.ask(2, push(0, 2)) == breach("failed: no such table", {1, 2}));
  CHECK(f.answer(1).empty());
  CHECK(f.tick(1s).empty());
}

TEST_CASE("a request that is held for 10 s is refused, and comes again") {
  fixture f;
  std::vector<std::pair<request_token, request>> held;
  f.stage->on_ask = [&](request_token from, request what, stage_effects&) {
    held.emplace_back(from, std::move(what));
  };
  f.ask(1, push(0, 1));
  f.ask(2, pull(1, 2));
  CHECK(f.tick(9999ms).empty());
  CHECK(f.tick(1ms)
        == lines{"fail 1 timed_out", "fail 2 timed_out",
                 "warn stage 'noise' held 2 requests for more than 10 s: they were refused"});
  SUBCASE("a late forward is dropped, and fails") {
    f.stage->on_tick = [&](stage_effects& effects) { effects.forward(held[0].second); };
    CHECK(f.tick(1s).empty());
    CHECK(f.stage->failures == 1);
  }
  SUBCASE("a late answer is dropped") {
    f.stage->on_tick = [&](stage_effects& effects) { effects.answer({1}, done(true, false)); };
    CHECK(f.tick(1s).empty());
  }
  SUBCASE("the batch that comes again is a new one") {
    pass(f);
    CHECK(f.ask(3, push(0, 1)) == lines{"forward 1 push 1"});
  }
  SUBCASE("the late forward of a batch that came again takes its place") {
    f.ask(3, push(0, 1));
    f.stage->on_tick = [&](stage_effects& effects) { effects.forward(held[0].second); };
    CHECK(f.tick(1s) == lines{"forward 1 push 1"});
    f.stage->on_tick = [&](stage_effects& effects) { effects.forward(held[2].second); };
    CHECK(f.tick(1s).empty()); // The second forward is dropped, and fails.
    CHECK(f.stage->failures == 1);
    f.stage->on_tick = nullptr;
    f.stage->on_answered = [](forward_id, stage_effects& effects) {
      effects.answer({1}, done(true, false));
      effects.refuse({3}, {errc::timed_out, "late"});
    };
    CHECK(f.answer(1) == lines{"fail 3 timed_out"});
    pass(f);
    CHECK(f.ask(4, push(0, 1)) == lines{"forward 3 push 1"});
  }
}

TEST_CASE("a batch that is held for 10 s for the third time in a row is a breach") {
  fixture f;
  f.stage->on_ask = [](request_token, request, stage_effects&) {};
  f.ask(1, push(0, 1));
  CHECK(f.tick(10s).size() == 2);
  f.ask(2, push(0, 1));
  CHECK(f.tick(10s).size() == 2);
  SUBCASE("by one worker or by several") {
    f.ask(3, push(1, 1));
    f.ask(4, pull(2, 5));
    const auto told = f.tick(10s);
    REQUIRE(told.size() == 4);
    CHECK(told[3]
          == "warn stage 'noise' held batch 1 of worker 1 for more than 10 s, 3 times in a row");
    CHECK(f.ask(5, pull(2, 6)).size() == 1); // It fails at once.
  }
  SUBCASE("an answer in between begins a new count") {
    pass(f);
    f.ask(3, push(0, 1));
    f.stage->on_answered = [](forward_id, stage_effects& effects) {
      effects.answer({3}, done(true, false));
    };
    CHECK(f.answer(1) == lines{"answer 3"});
    f.stage->on_ask = [](request_token, request, stage_effects&) {};
    f.ask(4, push(0, 1));
    CHECK(f.tick(10s).size() == 2);
  }
}

TEST_CASE("values of a batch that were pulled in between do not excuse that it is held") {
  fixture f;
  f.stage->on_answered = [](forward_id number, stage_effects& effects) {
    effects.answer({2 * number.value - 1}, done(false, true));
  };
  for (std::uint64_t i = 1; i <= 3; ++i) {
    pass(f);
    f.ask(2 * i - 1, pull(0, 1));
    CHECK(f.answer(i, false, true) == lines{"answer " + std::to_string(2 * i - 1)});
    f.stage->on_ask = {};
    f.ask(2 * i, push(0, 1));
    CHECK(f.tick(10s).size() == (i < 3 ? 2 : 3));
  }
}

TEST_CASE("a stage that holds any three pushes of a worker in a row is at fault") {
  fixture f;
  f.ask(1, push(0, 1));
  f.ask(2, push(0, 2)); // Held at the same time: they count once.
  f.ask(3, push(0, 3));
  CHECK(f.tick(10s).size() == 4);
  f.ask(4, push(0, 4));
  CHECK(f.tick(10s).size() == 2);
  f.ask(5, push(0, 5));
  const auto told = f.tick(10s);
  REQUIRE(told.size() == 3);
  CHECK(told[2]
        == "warn stage 'noise' held batch 5 of worker 0 for more than 10 s, like the 2 requests of "
           "this worker before");
}

TEST_CASE("a value that a stage has made must be finite, and others are not its fault") {
  fixture f;
  const auto with_values = [](std::uint64_t batch, std::vector<float> values) {
    auto what = push(0, batch);
    const auto made = std::make_shared<std::vector<float>>(std::move(values));
    what.push->pieces.push_back({{{1}, 0, made->size()}, float_ptr{made, made->data()}});
    return what;
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  SUBCASE("values of a trainer that are passed on") {
    pass(f);
    CHECK(f.ask(1, with_values(1, {nan})) == lines{"forward 1 push 1"});
  }
  SUBCASE("new values, wherever they lie") {
    for (const std::size_t at : {0, 63, 64, 129}) {
      fixture g;
      g.stage->on_ask = [&](request_token, request, stage_effects& effects) {
        std::vector<float> values(130, std::numeric_limits<float>::max());
        values[at] = at == 64 ? std::numeric_limits<float>::infinity() : nan;
        effects.forward(with_values(1, values));
      };
      const std::string text = at == 64 ? "inf" : "nan";
      CHECK(g.ask(1, with_values(1, {1}))
            == breach("forwarded batch 1 of worker 0 with a value that is not finite: " + text
                        + " in table 1",
                      {1}));
    }
  }
  SUBCASE("new values that are finite") {
    f.stage->on_ask = [&](request_token, request, stage_effects& effects) {
      effects.forward(with_values(1, std::vector<float>(130, 2)));
    };
    CHECK(f.ask(1, with_values(1, {1})) == lines{"forward 1 push 1"});
  }
}

TEST_CASE("a stage is ticked when it asked for it, and never after a breach") {
  fixture f;
  f.stage->on_next_tick = [] { return time_point{7s}; };
  CHECK_FALSE(f.guard.next_tick());
  pass(f);
  f.ask(1, push(0, 1));
  CHECK(f.guard.next_tick() == time_point{7s});
  f.stage->on_tick = [](stage_effects&) { throw std::runtime_error{"no time"}; };
  CHECK(f.tick(7s) == breach("failed: no time", {1}));
  CHECK_FALSE(f.guard.next_tick());
}

TEST_CASE("an exception of next_tick() is a breach") {
  fixture f;
  f.stage->on_next_tick = []() -> std::optional<time_point> { throw std::runtime_error{"never"}; };
  CHECK(f.ask(1, push(0, 1)) == breach("failed: never", {1}));
}

TEST_CASE("an answer has all rows that were asked for") {
  const auto value = std::make_shared<float>(1.0f);
  const auto rows = [](std::uint32_t table, std::uint64_t count) {
    return row_keys{.table = {table}, .width = 1, .count = count, .keys = nullptr};
  };
  const auto answered_with = [&](std::vector<row_keys> given) {
    fixture f;
    pass(f);
    auto asked = pull(0, 2);
    asked.pull->rows = {rows(0, 1), rows(2, 3)};
    f.ask(1, std::move(asked));
    f.stage->on_answered = [&](forward_id, stage_effects& effects) {
      auto what = done(false, true);
      for (const auto& x : given)
        what.pulled->rows.push_back({x, {value, value.get()}});
      effects.answer({1}, std::move(what));
    };
    return f.answer(1, false, true);
  };
  CHECK(answered_with({rows(0, 1), rows(2, 3)}) == lines{"answer 1"});
  const std::string wrong = "answered the pull for batch 2 of worker 0 without the rows of table ";
  CHECK(answered_with({rows(0, 1)}) == breach(wrong + "2", {1}));
  CHECK(answered_with({rows(0, 2), rows(2, 3)}) == breach(wrong + "0", {1}));
  CHECK(answered_with({}) == breach(wrong + "0", {1}));
}

TEST_CASE("a value that a stage leaves out is a breach") {
  fixture f;
  f.stage->on_ask = [](request_token, request what, stage_effects& effects) {
    what.push->pieces.push_back({{{1}, 0, 3}, nullptr});
    effects.forward(std::move(what));
  };
  CHECK(f.ask(1, push(0, 1))
        == breach("forwarded batch 1 of worker 0 without values of table 1", {1}));
}

TEST_CASE("the norm of a push is that of the values that a stage has made") {
  fixture f;
  const auto values_of = [](std::vector<float> values) {
    const auto made = std::make_shared<std::vector<float>>(std::move(values));
    return float_ptr{made, made->data()};
  };
  const auto asked = [&](float norm) {
    auto what = push(0, 1);
    what.push->gradient_norm = norm;
    what.push->pieces.push_back({{{1}, 0, 1}, values_of({3})});
    what.push->rows.push_back({{{2}, 2, 1, nullptr}, values_of({4, 12})});
    return what;
  };
  float scale = 2;
  f.stage->on_ask = [&](request_token, request what, stage_effects& effects) {
    if (scale != 1)
      for (auto& [where, values] : what.push->pieces)
        values = values_of({scale * *values});
    effects.forward(std::move(what));
  };
  const auto norm_after = [&](float norm) {
    guard_effects effects;
    f.guard.ask({1}, asked(norm), f.now, effects);
    return std::get<forward_effect>(effects.at(0)).what.push->gradient_norm;
  };
  SUBCASE("new values") { CHECK(norm_after(13) == 14.0f); } // 6, 4 and 12
  SUBCASE("values that are passed on") {
    scale = 1;
    CHECK(norm_after(5) == 5.0f);
  }
  SUBCASE("no table clips") { CHECK(norm_after(0) == 0.0f); }
}

TEST_CASE("a request behind a forward of its worker is not held by the stage") {
  fixture f;
  pass(f);
  f.ask(1, push(0, 1));
  f.stage->on_ask = {};
  f.ask(2, pull(0, 2));
  for (int i = 0; i < 60; ++i)
    CHECK(f.tick(500ms).empty());
  f.stage->on_answered = [](forward_id, stage_effects& effects) {
    effects.answer({1}, done(true, false));
  };
  CHECK(f.answer(1) == lines{"answer 1"});
  CHECK(f.tick(9s).empty());
  CHECK(f.tick(1s).size() == 2);
}

TEST_CASE("a stage that refuses 1000 requests of a worker in a row is at fault") {
  fixture f;
  f.stage->on_ask = [](request_token from, const request& what, stage_effects& effects) {
    if (what.push && what.push->step.worker.value == 0)
      effects.refuse(from, {errc::timed_out, "no"});
    else
      effects.forward(what);
  };
  f.stage->on_failed = [](forward_id, stage_effects& effects) {
    effects.refuse({5000}, {errc::peer_lost, "gone"});
  };
  f.stage->on_answered = [](forward_id, stage_effects& effects) {
    effects.answer({5000}, done(true, false));
  };
  std::uint64_t token = 1;
  const auto refuse = [&](int times) {
    for (int i = 0; i < times; ++i, ++token)
      CHECK(f.ask(token, push(0, 1)) == lines{"fail " + std::to_string(token) + " timed_out"});
  };
  SUBCASE("whichever others are answered") {
    refuse(999);
    f.ask(5000, push(1, 2));
    CHECK(f.answer(1) == lines{"answer 5000"});
    CHECK(f.ask(5001, push(0, 1))
          == lines{"fail 5001 timed_out",
                   "warn stage 'noise' refused 1000 requests of worker 0 in a "
                   "row, the last one with: no"});
  }
  SUBCASE("but not one that passes on failures of the next kv") {
    for (int i = 1; i <= 2000; ++i) {
      f.ask(5000, push(1, 2));
      CHECK(f.fail(static_cast<std::uint64_t>(i)) == lines{"fail 5000 peer_lost"});
    }
  }
}

TEST_CASE("a stage that is an actor tells of events, and its end is a breach") {
  fixture f;
  f.ask(1, push(0, 1));
  f.stage->on_tick = [](stage_effects& effects) { effects.forward(push(0, 1)); };
  CHECK(f.decide([&](auto& effects) { f.guard.poll(f.now, effects); })
        == lines{"forward 1 push 1"});
  const auto end = [&](auto& effects) { f.guard.ended("it quit", effects); };
  CHECK(f.decide(end) == breach("ended: it quit", {1}));
  CHECK(f.decide(end).empty());
  CHECK(f.decide([&](auto& effects) { f.guard.poll(f.now, effects); }).empty());
}

} // namespace troupe::stage_guard_test
