#include "actors/protocol/worker/reducer.hpp"

#include "tests/actors/shard_fixture.hpp"

#include "doctest/doctest.h"

#include <map>
#include <random>
#include <set>

namespace troupe::reducer_test {

namespace {

using namespace test;
using namespace std::chrono_literals;

pull_request values_for(const step_header& step) { return {.step = step, .ranges = {{{0}, 0, 4}}}; }

std::string batches_of(const std::vector<step_header>& steps) {
  std::string text;
  for (const auto& step : steps)
    text += " " + std::to_string(step.batch.value);
  return text;
}

/// Every call returns its effects, one line each. Batch and clock of a step are equal, and tokens
/// are the caller's.
struct fixture {
  explicit fixture(const consistency& mode, std::uint32_t workers = 3)
      : job(job_of({mode}, workers, 1000)), decide(job, {.wait = 100ms}) {}

  step_header step(std::uint32_t worker, std::uint64_t batch) const {
    return {{worker}, first_start(worker), {generation}, {batch}, batch};
  }
  request push(std::uint32_t worker, std::uint64_t batch) const {
    request what;
    what.push = push_request{.step = step(worker, batch), .tables = {{0}}, .pieces = {}};
    return what;
  }
  request pull(std::uint32_t worker, std::uint64_t batch) const {
    request what;
    what.pull = values_for(step(worker, batch));
    return what;
  }
  /// Returns a request with the push of one step and the pull for the next.
  request both(std::uint32_t worker, std::uint64_t batch, std::uint64_t next) const {
    auto what = push(worker, batch);
    what.pull = values_for(step(worker, next));
    return what;
  }

  lines ask(std::uint64_t token, request what) {
    reducer_effects effects;
    decide.ask({token}, std::move(what), now, effects);
    return text_of(effects);
  }
  lines answer(std::uint64_t number) {
    reducer_effects effects;
    reply whole;
    whole.pushed = push_reply{number, false};
    whole.pulled = pull_reply{.version = number, .pieces = {}};
    decide.answered({number}, whole, effects);
    return text_of(effects);
  }
  lines fail(std::uint64_t number, errc code) {
    reducer_effects effects;
    decide.failed({number}, {code, "why"}, effects);
    return text_of(effects);
  }
  lines tick(std::chrono::milliseconds later) {
    now += later;
    reducer_effects effects;
    decide.tick(now, effects);
    return text_of(effects);
  }

  static lines text_of(const reducer_effects& effects) {
    struct {
      std::string operator()(const sum_effect& x) const {
        auto text = "forward " + std::to_string(x.number.value);
        if (!x.pushes.empty())
          text += " push";
        for (const auto& push : x.pushes)
          text += batches_of(push->steps());
        if (x.pull)
          text += " pull " + std::to_string(x.pull->step.batch.value) + batches_of(x.pull->others);
        return text;
      }
      std::string operator()(const left_out_effect& x) const {
        return "left out " + std::to_string(x.worker.value);
      }
      std::string operator()(const answered_effect& x) const {
        return "answer " + std::to_string(x.request.value) + (x.answer.pushed ? " pushed" : "")
               + (x.answer.pulled ? " pulled" : "");
      }
      std::string operator()(const failed_effect& x) const {
        return "fail " + std::to_string(x.request.value) + " " + to_string(x.why.code);
      }
    } const write;
    lines text;
    for (const auto& effect : effects)
      text.push_back(std::visit(write, effect));
    return text;
  }

  job_spec job;
  reducer decide;
  time_point now{0};
  std::uint64_t generation = 1;
};

/// Returns a fixture whose workers 0, 1 and 2 have their first values: forwards 1 to 3.
fixture begun(const consistency& mode) {
  fixture f{mode};
  CHECK(f.ask(1, f.pull(0, 0)) == lines{"forward 1 pull 0"});
  CHECK(f.ask(2, f.pull(1, 1)) == lines{"forward 2 pull 1"});
  CHECK(f.ask(3, f.pull(2, 2)) == lines{"forward 3 pull 2"});
  for (std::uint64_t i = 1; i <= 3; ++i)
    CHECK(f.answer(i) == lines{"answer " + std::to_string(i) + " pulled"});
  return f;
}

TEST_CASE("reducer: pushes of all workers are one, and so are their pulls") {
  auto f = begun(asp());
  CHECK(f.ask(4, f.both(0, 0, 3)).empty());
  CHECK(f.ask(5, f.both(1, 1, 4)).empty());
  CHECK(f.ask(6, f.both(2, 2, 5)) == lines{"forward 4 push 0 1 2 pull 5 4 3"});
  CHECK(f.answer(4)
        == lines{"answer 4 pushed pulled", "answer 5 pushed pulled", "answer 6 pushed pulled"});
}

TEST_CASE("reducer: who waits for an answer is not waited for") {
  auto f = begun(asp());
  CHECK(f.ask(4, f.both(0, 0, 3)).empty());
  CHECK(f.ask(5, f.both(1, 1, 4)).empty());
  CHECK(f.ask(6, f.both(2, 2, 5)) == lines{"forward 4 push 0 1 2 pull 5 4 3"});
  CHECK(f.ask(7, f.push(0, 6)) == lines{"forward 5 push 6"});
}

TEST_CASE("reducer: a worker that is late is left out, and its batch is in a later sum") {
  auto f = begun(asp());
  CHECK(f.ask(4, f.both(0, 0, 3)).empty());
  CHECK(f.ask(5, f.both(1, 1, 4)).empty());
  CHECK(f.decide.next_tick() == f.now + 100ms);
  CHECK(f.tick(99ms).empty());
  CHECK(f.tick(1ms) == lines{"left out 2", "forward 4 push 0 1 pull 4 3"});
  CHECK_FALSE(f.decide.next_tick());
  f.answer(4);
  CHECK(f.ask(6, f.both(0, 3, 5)).empty());
  SUBCASE("with the others") {
    CHECK(f.ask(7, f.both(2, 2, 6)).empty());
    CHECK(f.ask(8, f.both(1, 4, 7)) == lines{"forward 5 push 3 2 4 pull 7 6 5"});
  }
  SUBCASE("alone, where they do not come: then they are not waited for either") {
    CHECK(f.tick(100ms) == lines{"left out 1", "forward 5 push 3 pull 5"});
    CHECK(f.ask(7, f.both(2, 2, 6)) == lines{"forward 6 push 2 pull 6"});
  }
  SUBCASE("and nobody waits for it before") {
    CHECK(f.ask(8, f.both(1, 4, 7)) == lines{"forward 5 push 3 4 pull 7 5"});
  }
}

TEST_CASE("reducer: what cannot be had as one is had one by one, once") {
  for (const errc code :
       {errc::sum_not_applicable, errc::fenced, errc::non_finite, errc::malformed}) {
    auto f = begun(asp());
    f.ask(4, f.both(0, 0, 3));
    f.ask(5, f.push(1, 1));
    CHECK(f.ask(6, f.both(2, 2, 5)) == lines{"forward 4 push 0 1 2 pull 5 3"});
    CHECK(f.fail(4, code)
          == lines{"forward 5 push 0 pull 3", "forward 6 push 1", "forward 7 push 2 pull 5"});
    CHECK(f.fail(4, code).empty());
    CHECK(f.answer(5) == lines{"answer 4 pushed pulled"});
    CHECK(f.fail(6, code) == lines{"fail 5 " + std::string{to_string(code)}});
    CHECK(f.answer(7) == lines{"answer 6 pushed pulled"});
  }
}

TEST_CASE("reducer: what ails everyone fails everyone") {
  for (const errc code : {errc::rolled_back, errc::overloaded, errc::peer_lost, errc::timed_out}) {
    auto f = begun(asp());
    f.ask(4, f.push(0, 0));
    f.ask(5, f.push(1, 1));
    f.ask(6, f.push(2, 2));
    const std::string name = to_string(code);
    CHECK(f.fail(4, code) == lines{"fail 4 " + name, "fail 5 " + name, "fail 6 " + name});
  }
}

TEST_CASE("reducer: slots of a bsp clock go at once and one by one, their pulls as one") {
  auto f = begun(bsp()); // A clock has three slots.
  CHECK(f.ask(4, f.both(0, 0, 3)) == lines{"forward 4 push 0"});
  CHECK(f.ask(5, f.both(1, 1, 4)) == lines{"forward 5 push 1"});
  CHECK(f.ask(6, f.both(2, 2, 5)) == lines{"forward 6 push 2", "forward 7 pull 5 4 3"});
  CHECK(f.answer(7).empty());
  CHECK(f.answer(4) == lines{"answer 4 pushed pulled"});
  CHECK(f.answer(6) == lines{"answer 6 pushed pulled"});
  CHECK(f.fail(5, errc::rolled_back) == lines{"fail 5 rolled_back"});
}

TEST_CASE("reducer: a bsp request whose push has failed leaves the round") {
  auto f = begun(bsp());
  f.ask(4, f.both(0, 0, 3));
  f.ask(5, f.both(1, 1, 4));
  CHECK(f.fail(4, errc::timed_out) == lines{"fail 4 timed_out"});
  CHECK(f.ask(6, f.both(2, 2, 5)) == lines{"forward 6 push 2"});
  CHECK(f.ask(7, f.both(0, 0, 3)) == lines{"forward 7 push 0", "forward 8 pull 5 4 3"});
}

TEST_CASE("reducer: values of different bsp clocks are different pulls") {
  auto f = begun(bsp());
  CHECK(f.ask(4, f.push(0, 0)) == lines{"forward 4 push 0"}); // Worker 0 has a second slot to do.
  CHECK(f.ask(5, f.both(1, 1, 4)) == lines{"forward 5 push 1"});
  CHECK(f.ask(6, f.pull(2, 2)) == lines{"forward 6 pull 4", "forward 7 pull 2"});
}

TEST_CASE("reducer: pulls that are further apart than the ssp bound are different ones") {
  auto f = begun(ssp(2));
  f.ask(4, f.both(0, 0, 9));
  f.ask(5, f.both(1, 1, 7));
  CHECK(f.ask(6, f.both(2, 2, 6))
        == lines{"forward 4 push 0 1 pull 9 7", "forward 5 push 2 pull 6"});
  CHECK(f.answer(4) == lines{"answer 4 pushed pulled", "answer 5 pushed pulled"});
  CHECK(f.answer(5) == lines{"answer 6 pushed pulled"});
}

TEST_CASE("reducer: in ssp a push without a pull waits for nobody's values") {
  auto f = begun(ssp(2));
  f.ask(4, f.push(0, 0));
  f.ask(5, f.push(1, 1));
  CHECK(f.ask(6, f.both(2, 2, 3)) == lines{"forward 4 push 2 pull 3", "forward 5 push 0 1"});
}

TEST_CASE("reducer: in ssp no clock is told before the pushes below it are acknowledged") {
  auto f = begun(ssp(2));
  f.ask(4, f.push(0, 0));
  f.ask(5, f.push(1, 1));
  CHECK(f.ask(6, f.push(2, 2)) == lines{"forward 4 push 0 1 2"});
  CHECK(f.ask(7, f.pull(0, 3)).empty());
  CHECK(f.ask(8, f.both(1, 4, 5)).empty());
  SUBCASE("which a refusal of their sum does not change") {
    CHECK(f.fail(4, errc::sum_not_applicable)
          == lines{"forward 7 push 0", "forward 8 push 1", "forward 9 push 2"});
    CHECK(f.answer(7) == lines{"answer 4 pushed", "forward 5 pull 3"});
    CHECK(f.fail(8, errc::non_finite) == lines{"fail 5 non_finite", "forward 6 push 4 pull 5"});
    CHECK(f.answer(9) == lines{"answer 6 pushed"});
  }
  SUBCASE("and then they go on at once") {
    CHECK(f.answer(4)
          == lines{"answer 4 pushed", "answer 5 pushed", "answer 6 pushed", "forward 5 pull 3",
                   "forward 6 push 4 pull 5"});
  }
}

TEST_CASE("reducer: pulls that name rows, or other stamps, are different ones") {
  auto f = begun(asp());
  auto rows = f.pull(0, 3);
  const auto key = std::make_shared<const std::uint64_t>(7);
  rows.pull->rows = {{{0}, 1, 1, key}};
  auto stamped = f.pull(1, 4);
  stamped.pull->ranges.front().stamp = 9;
  f.ask(4, rows);
  f.ask(5, stamped);
  CHECK(f.ask(6, f.pull(2, 5))
        == lines{"forward 4 pull 5", "forward 5 pull 4", "forward 6 pull 3"});
}

TEST_CASE("reducer: a round has one history, and one request of a worker") {
  auto f = begun(asp());
  CHECK(f.ask(4, f.push(0, 0)).empty());
  CHECK(f.ask(5, f.push(0, 3)) == lines{"forward 4 push 0"});
  f.generation = 2;
  CHECK(f.ask(6, f.push(1, 1)) == lines{"forward 5 push 3"});
}

TEST_CASE("reducer: who brings no push pulls apart from those who do") {
  auto f = begun(asp());
  CHECK(f.ask(4, f.pull(0, 3)).empty());
  CHECK(f.ask(5, f.both(1, 1, 4)).empty());
  CHECK(f.ask(6, f.pull(2, 5)) == lines{"forward 4 push 1 pull 4", "forward 5 pull 5 3"});
}

TEST_CASE("reducer: pushes for other tables are not in one sum") {
  auto f = begun(asp());
  auto other = f.push(1, 1);
  other.push->tables = {{0}, {1}};
  CHECK(f.ask(4, f.push(0, 0)).empty());
  CHECK(f.ask(5, f.pull(2, 5)).empty());
  CHECK(f.ask(6, other) == lines{"forward 4 push 0", "forward 5 pull 5", "forward 6 push 1"});
}

TEST_CASE("reducer: who asks for the latest values waits for nobody") {
  auto f = begun(asp());
  auto latest = f.pull(0, 0);
  latest.pull->latest = true;
  CHECK(f.ask(4, latest) == lines{"forward 4 pull 0"});
}

/// The kv behind the reducer answers, refuses or loses requests in any order.
TEST_CASE("reducer: each request ends once, and its push has gone on before it was acknowledged") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random{seed};
    const auto pick = [&](std::uint64_t count) { return random() % count; };
    const std::vector<consistency> modes{asp(), ssp(2), bsp()};
    const std::uint32_t workers = 4;
    reducer decide{job_of({modes[seed % 3]}, workers, 10'000), {.wait = 100ms}};
    time_point now{0};
    std::uint64_t next_token = 1, next_batch = 0, sums = 0, left_out = 0;
    struct asked {
      step_header step;
      bool push, pull;
    };
    std::map<std::uint64_t, asked> open; ///< Open requests by token.
    std::vector<std::uint64_t> clocks(workers);
    std::map<std::uint64_t, sum_effect> forwarded;
    std::set<std::uint64_t> applied;
    std::vector<std::size_t> of_worker(workers);
    const auto take = [&](const reducer_effects& effects) {
      for (const auto& effect : effects) {
        if (const auto* x = std::get_if<sum_effect>(&effect)) {
          sums += x->pushes.size() > 1 ? 1 : 0;
          if (seed % 3 == 2)
            REQUIRE(x->pushes.size() <= 1);
          std::set<std::uint32_t> from;
          for (const auto& push : x->pushes)
            REQUIRE(from.insert(push->step.worker.value).second);
          if (seed % 3 == 1) { // In ssp the clocks that the reducer tells are true.
            std::vector<step_header> told;
            std::set<std::uint64_t> with;
            for (const auto& push : x->pushes) {
              told.push_back(push->step);
              with.insert(push->step.batch.value);
            }
            if (x->pull) {
              told.push_back(x->pull->step);
              told.insert(told.end(), x->pull->others.begin(), x->pull->others.end());
            }
            for (const auto& step : told)
              for (const auto& [token, other] : open)
                REQUIRE((!other.push || other.step.worker != step.worker
                         || other.step.clock >= step.clock || with.contains(other.step.batch.value)
                         || applied.contains(other.step.batch.value)));
          }
          forwarded.emplace(x->number.value, *x);
        } else if (const auto* y = std::get_if<answered_effect>(&effect)) {
          const auto done = open.extract(y->request.value);
          REQUIRE(done);
          const auto& what = done.mapped();
          REQUIRE(applied.contains(what.step.batch.value) == what.push);
          REQUIRE(y->answer.pushed.has_value() == what.push);
          REQUIRE(y->answer.pulled.has_value() == what.pull);
          --of_worker[what.step.worker.value];
        } else if (const auto* z = std::get_if<failed_effect>(&effect)) {
          const auto done = open.extract(z->request.value);
          REQUIRE(done);
          --of_worker[done.mapped().step.worker.value];
        } else {
          ++left_out;
        }
      }
    };
    for (int event = 0; event < 2000 || !open.empty(); ++event) {
      REQUIRE(event < 20'000);
      reducer_effects effects;
      const auto what = pick(3);
      if (what == 0 && event < 2000) {
        const auto worker = static_cast<std::uint32_t>(pick(workers));
        if (of_worker[worker] < 2) {
          const auto kind = pick(3);
          const asked mine{
            {{worker}, {9}, {1}, {next_batch++}, clocks[worker]}, kind != 0, kind != 1};
          clocks[worker] += mine.push ? 1 : 0;
          auto after = mine.step;
          after.clock = clocks[worker];
          request body;
          if (mine.push)
            body.push = push_request{.step = mine.step, .tables = {{0}}, .pieces = {}};
          if (mine.pull)
            body.pull = values_for(after);
          open.emplace(next_token, mine);
          ++of_worker[worker];
          decide.ask({next_token++}, std::move(body), now, effects);
        }
      } else if (what == 1 && !forwarded.empty()) {
        auto at = forwarded.begin();
        std::advance(at, pick(forwarded.size()));
        const auto asked = std::move(forwarded.extract(at).mapped());
        if (pick(5) == 0) {
          const std::vector<errc> codes{errc::sum_not_applicable, errc::timed_out,
                                        errc::rolled_back};
          decide.failed(asked.number, {codes[pick(3)], "why"}, effects);
        } else {
          for (const auto& push : asked.pushes)
            REQUIRE(applied.insert(push->step.batch.value).second);
          reply whole;
          if (!asked.pushes.empty())
            whole.pushed.emplace();
          if (asked.pull)
            whole.pulled.emplace();
          decide.answered(asked.number, whole, effects);
        }
      } else {
        now += std::chrono::milliseconds{pick(60)};
        decide.tick(now, effects);
        const auto next = decide.next_tick();
        REQUIRE((!next || (*next > now && *next <= now + 100ms)));
      }
      take(effects);
    }
    CHECK((seed % 3 == 2 || sums > 10));
    CHECK(left_out > 0);
  }
}

} // namespace

} // namespace troupe::reducer_test
