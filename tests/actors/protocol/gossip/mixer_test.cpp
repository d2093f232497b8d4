// Tests the mixers event by event; mixing_rate_test.cpp runs whole graphs of them.
#include "actors/protocol/gossip/mixer.hpp"

#include "doctest/doctest.h"
#include "fmt/format.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe::mixer_test {

namespace {

using namespace std::chrono_literals;
using lines = std::vector<std::string>;
using kind = peer_word::kind;

/// Writes each effect as a line.
class recorder final : public mixer_effects {
public:
  void send(std::uint32_t to, const peer_word& what) override {
    auto line = fmt::format("{}>{}", to_string(what.what), to);
    if (what.what == kind::greet)
      line += fmt::format(" clock {} number {} echo {}", what.clock, what.number, what.echo);
    else if (what.what == kind::values)
      line += fmt::format(" clock {} degree {}", what.clock, what.degree);
    else
      line += fmt::format(" {}", what.number);
    all.push_back(std::move(line));
  }
  void mix(std::uint64_t clock, double own, std::span<const peer_share> others) override {
    auto line = fmt::format("mix {}: {:.4g}", clock, own);
    for (const auto& each : others)
      line += fmt::format(" + {:.4g}*{}", each.weight, each.neighbour);
    all.push_back(std::move(line));
  }
  void keep_values(std::uint32_t of, std::uint64_t clock) override {
    all.push_back(fmt::format("keep {} of {}", clock, of));
  }
  void forget_values(std::uint32_t of, std::uint64_t clock) override {
    all.push_back(fmt::format("forget {} of {}", clock, of));
  }
  void halve(std::uint32_t with) override { all.push_back(fmt::format("halve {}", with)); }
  void forget_change(std::uint32_t of) override {
    all.push_back(fmt::format("forget change of {}", of));
  }
  void add_change() override { all.emplace_back("add change"); }
  void step() override { all.emplace_back("step"); }
  void answer() override { all.emplace_back("answer"); }
  void say(const std::string& line) override { all.push_back("say " + line); }

  lines all;
};

/// Peer 5, with the neighbours 3, 8 and 9.
struct peer_five {
  explicit peer_five(mixing how) : mix(make_mixer({how, 5, {3, 8, 9}, 50, 1})) {}

  lines take() { return std::exchange(out.all, {}); }
  lines join(std::uint32_t neighbour) {
    mix->joined(neighbour, now, out);
    return take();
  }
  lines lose(std::uint32_t neighbour) {
    mix->lost(neighbour, now, out);
    return take();
  }
  lines hear(std::uint32_t neighbour, const peer_word& what) {
    const auto fine = mix->heard(neighbour, what, now, out);
    REQUIRE_MESSAGE(fine, fine.error().text);
    return take();
  }
  std::string refuse(std::uint32_t neighbour, const peer_word& what) {
    const auto fine = mix->heard(neighbour, what, now, out);
    REQUIRE_FALSE(fine);
    CHECK(fine.error().code == errc::malformed);
    CHECK(take().empty());
    return fine.error().text;
  }
  /// Meets a neighbour; both are in the clock that this peer knows.
  void meet(std::uint32_t neighbour, std::uint64_t clock = 0, std::uint64_t incarnation = 1) {
    join(neighbour);
    ++meetings;
    hear(neighbour, {kind::greet, 0, clock, meetings, number_of(neighbour), incarnation});
    REQUIRE(mix->is_met(neighbour));
  }
  /// Counts the meetings of a neighbour that begin here.
  std::uint64_t number_of(std::uint32_t neighbour) { return ++numbers[neighbour]; }

  lines push(std::uint64_t batch = 0, bool goes_on = true) {
    mix->pushed(batch, goes_on, now, out);
    return take();
  }
  lines ask() {
    mix->asked(now, out);
    return take();
  }
  lines tick(std::chrono::milliseconds later) {
    now += later;
    mix->tick(now, out);
    return take();
  }

  std::unique_ptr<mixer> mix;
  recorder out;
  time_point now{1s};
  std::uint64_t meetings = 0, numbers[3] = {};
};

peer_word values(std::uint64_t clock, std::uint32_t degree = 1) {
  return {.what = kind::values, .degree = degree, .clock = clock};
}
peer_word word(kind what, std::uint64_t number) { return {.what = what, .number = number}; }
peer_word greet(std::uint64_t clock, std::uint64_t number, std::uint64_t echo,
                std::uint64_t incarnation = 1) {
  return {kind::greet, 0, clock, number, echo, incarnation};
}

// -- meetings -----------------------------------------------------------------------------------

TEST_CASE("a meeting begins when each peer has echoed the other's number") {
  peer_five five{mixing::pairwise};
  CHECK(five.join(0) == lines{"greet>0 clock 0 number 1 echo 0"});
  CHECK_FALSE(five.mix->is_met(0));
  CHECK(five.hear(0, greet(0, 7, 0)) == lines{"greet>0 clock 0 number 1 echo 7"});
  CHECK_FALSE(five.mix->is_met(0));
  CHECK(five.hear(0, greet(0, 7, 1)).empty());
  CHECK(five.mix->is_met(0));
  CHECK(five.mix->living() == 1);
}

TEST_CASE("a greeting that comes before the other lane joins is answered then") {
  peer_five five{mixing::pairwise};
  CHECK(five.hear(0, greet(0, 7, 0)).empty());
  CHECK(five.join(0) == lines{"greet>0 clock 0 number 1 echo 7"});
  CHECK(five.hear(0, greet(0, 7, 1)).empty());
  CHECK(five.mix->is_met(0));
}

TEST_CASE("a neighbour that lost a lane begins anew, though this peer noticed nothing") {
  peer_five five{mixing::pairwise};
  five.ask();
  five.meet(0);
  CHECK(five.hear(0, greet(0, 8, 0)) == lines{"greet>0 clock 0 number 1 echo 8"});
  CHECK_FALSE(five.mix->is_met(0));
  CHECK(five.hear(0, word(kind::ask, 1)).empty()); // Of the earlier meeting.
  CHECK(five.hear(0, greet(0, 8, 1)).empty());
  CHECK(five.hear(0, word(kind::ask, 2)) == lines{"accept>0 2", "answer>0 2"});
}

TEST_CASE("a greeting of an earlier meeting does not begin this one") {
  peer_five five{mixing::pairwise};
  five.join(0);
  CHECK(five.lose(0).empty());
  CHECK(five.join(0) == lines{"greet>0 clock 0 number 2 echo 0"});
  CHECK(five.hear(0, greet(0, 7, 1)) == lines{"greet>0 clock 0 number 2 echo 7"});
  CHECK_FALSE(five.mix->is_met(0));
  CHECK(five.hear(0, greet(0, 7, 2)).empty());
  CHECK(five.mix->is_met(0));
}

TEST_CASE("a peer without neighbours says so once, and goes on") {
  for (const auto how : {mixing::each_step, mixing::pairwise}) {
    peer_five five{how};
    CHECK(five.push() == lines{"step", "answer"});
    five.meet(0);
    five.meet(1);
    CHECK(five.lose(1).empty());
    CHECK(five.lose(0) == lines{"say no neighbour of peer 5 is left: it goes on alone"});
    CHECK(five.lose(0).empty());
    CHECK(five.push() == lines{"step", "answer"});
  }
}

TEST_CASE("a greeting without number or incarnation cannot be") {
  peer_five five{mixing::each_step};
  CHECK(five.refuse(1, greet(4, 0, 0))
        == "peer 8 sends greet with clock 4 and number 0: number and incarnation are not 0");
  CHECK(five.refuse(1, greet(4, 2, 0, 0))
        == "peer 8 sends greet with clock 4 and number 2: number and incarnation are not 0");
}

// -- each_step ----------------------------------------------------------------------------------

TEST_CASE("each_step: a peer mixes and steps when gradient and values are there") {
  peer_five five{mixing::each_step};
  five.meet(0);
  five.meet(1);
  CHECK(five.ask() == lines{"answer"});
  CHECK(five.push()
        == lines{"step", "values>0 clock 1 degree 2", "values>1 clock 1 degree 2", "answer"});
  CHECK(five.hear(0, values(1, 3)) == lines{"keep 1 of 0"});
  CHECK(five.push().empty());
  CHECK(five.hear(1, values(1, 1))
        == lines{"keep 1 of 1", "mix 1: 0.4167 + 0.25*0 + 0.3333*1", "step",
                 "values>0 clock 2 degree 2", "values>1 clock 2 degree 2", "answer"});
}

TEST_CASE("each_step: values of the next clock are kept until this peer enters it") {
  peer_five five{mixing::each_step};
  five.meet(0);
  five.ask();
  CHECK(five.hear(0, values(1)) == lines{"keep 1 of 0"});
  CHECK(five.push() == lines{"step", "values>0 clock 1 degree 1", "answer"});
  CHECK(five.push() == lines{"mix 1: 0.5 + 0.5*0", "step", "values>0 clock 2 degree 1", "answer"});
}

TEST_CASE("each_step: a peer without work follows its neighbours and does not turn by itself") {
  peer_five five{mixing::each_step};
  five.meet(0);
  five.meet(1);
  CHECK(five.tick(1s).empty());
  CHECK(five.hear(0, values(1))
        == lines{"keep 1 of 0", "values>0 clock 1 degree 2", "values>1 clock 1 degree 2"});
  CHECK(five.hear(1, values(1)) == lines{"keep 1 of 1"});
  CHECK(five.tick(1s).empty());
  CHECK(five.hear(1, values(2))
        == lines{"keep 2 of 1", "mix 1: 0.3333 + 0.3333*0 + 0.3333*1", "values>0 clock 2 degree 2",
                 "values>1 clock 2 degree 2"});
}

TEST_CASE("each_step: a neighbour that is one clock ahead waits for the worker's gradient") {
  peer_five five{mixing::each_step};
  five.meet(0);
  five.ask();
  CHECK(five.hear(0, values(1)) == lines{"keep 1 of 0"});
  SUBCASE("which comes") {
    CHECK(five.push(0, false) == lines{"step", "values>0 clock 1 degree 1", "answer"});
    // The worker has no batch from here on.
    CHECK(five.hear(0, values(2))
          == lines{"keep 2 of 0", "mix 1: 0.5 + 0.5*0", "values>0 clock 2 degree 1"});
  }
  SUBCASE("which does not come") {
    CHECK(five.ask() == lines{"answer"}); // For another batch.
    CHECK(five.push() == lines{"step", "values>0 clock 1 degree 1", "answer"});
  }
}

TEST_CASE("each_step: a lost neighbour's values count if both sent theirs, and no one waits") {
  peer_five five{mixing::each_step};
  five.meet(0);
  five.meet(1);
  five.push();
  five.hear(0, values(1, 2));
  CHECK(five.push().empty());
  SUBCASE("it had not sent them") {
    CHECK(five.lose(1)
          == lines{"mix 1: 0.6667 + 0.3333*0", "step", "values>0 clock 2 degree 1", "answer"});
  }
  SUBCASE("it had sent them") {
    CHECK(five.lose(0).empty());
    CHECK(five.hear(1, values(1, 2))
          == lines{"keep 1 of 1", "mix 1: 0.3333 + 0.3333*0 + 0.3333*1", "step",
                   "values>1 clock 2 degree 1", "answer"});
  }
}

TEST_CASE("each_step: values of a later clock end with their meeting") {
  peer_five five{mixing::each_step};
  five.meet(0);
  five.ask();
  five.hear(0, values(1));
  CHECK(five.lose(0)
        == lines{"forget 1 of 0", "say no neighbour of peer 5 is left: it goes on alone"});
}

TEST_CASE("each_step: a peer that joins enters the largest clock, without a gradient") {
  peer_five five{mixing::each_step};
  five.join(0);
  CHECK(five.hear(0, greet(41, 1, 1))
        == lines{"greet>0 clock 0 number 1 echo 1", "values>0 clock 41 degree 1"});
  CHECK(five.mix->clock() == 41);
  // Neighbour 0 has been in 41 before they met: neither has the other's values of it.
  CHECK(five.push() == lines{"step", "values>0 clock 42 degree 1", "answer"});
}

TEST_CASE("each_step: a neighbour far behind is not waited for once it leaves clocks out") {
  peer_five five{mixing::each_step};
  for (int i = 0; i < 9; ++i)
    five.push();
  five.ask();
  five.join(0);
  CHECK(five.hear(0, greet(2, 1, 1)) == lines{"greet>0 clock 9 number 1 echo 1"});
  CHECK(five.push().empty());
  CHECK(five.hear(0, values(9))
        == lines{"step", "values>0 clock 10 degree 1", "answer"}); // 9 is not shared.
  CHECK(five.hear(0, values(10)) == lines{"keep 10 of 0"});
}

TEST_CASE("each_step: words that cannot be are refused") {
  peer_five five{mixing::each_step};
  five.meet(0, 0);
  five.ask();
  CHECK(five.refuse(0, values(0))
        == "peer 3 sends values with clock 0 and number 0: its clock "
           "does not grow");
  CHECK(five.refuse(0, values(1, 0))
        == "peer 3 sends values with clock 1 and number 0: its degree "
           "is 0");
  CHECK(five.refuse(0, word(kind::ask, 1))
        == "peer 3 sends ask with clock 0 and number 1: this "
           "peer mixes by each_step");
  five.hear(0, values(1));
  CHECK(five.refuse(0, values(2))
        == "peer 3 sends values with clock 2 and number 0: it did not "
           "wait for this peer");
}

// -- pairwise -----------------------------------------------------------------------------------

TEST_CASE("pairwise: an exchange, as the peer that asks") {
  peer_five five{mixing::pairwise};
  five.meet(1);
  CHECK(five.ask() == lines{"answer"});
  CHECK(five.push() == lines{"step", "ask>1 1", "answer"});
  CHECK(five.hear(1, word(kind::answer, 1)) == lines{"halve 1", "change>1 1"});
  CHECK(five.push() == lines{"step", "ask>1 2", "answer"});
  CHECK(five.hear(1, word(kind::done, 1)) == lines{"forget change of 1"});
  CHECK(five.hear(1, word(kind::busy, 2)).empty());
  CHECK(five.push() == lines{"step", "ask>1 3", "answer"});
}

TEST_CASE("pairwise: an exchange, as the peer that answers") {
  peer_five five{mixing::pairwise};
  five.ask();
  five.meet(0);
  five.meet(1);
  CHECK(five.hear(0, word(kind::ask, 1)) == lines{"accept>0 1", "answer>0 1"});
  CHECK(five.hear(1, word(kind::ask, 1)) == lines{"busy>1 1"});
  CHECK(five.hear(0, word(kind::change, 1)) == lines{"add change", "done>0 1"});
  CHECK(five.hear(1, word(kind::ask, 2)) == lines{"accept>1 2", "answer>1 2"});
  CHECK(five.hear(1, word(kind::release, 2)).empty());
  CHECK(five.hear(0, word(kind::ask, 2)) == lines{"accept>0 2", "answer>0 2"});
}

TEST_CASE("pairwise: a worker waits for the open exchange, for at most 100 ms") {
  peer_five five{mixing::pairwise};
  five.meet(0);
  five.push();
  CHECK(five.push() == lines{"step"});
  SUBCASE("which ends") { CHECK(five.hear(0, word(kind::busy, 1)) == lines{"ask>0 2", "answer"}); }
  SUBCASE("of which no word comes") {
    CHECK(five.tick(99ms).empty());
    CHECK(five.tick(1ms) == lines{"ask>0 2", "answer"});
    CHECK(five.hear(0, word(kind::accept, 1)) == lines{"release>0 1"});
    CHECK(five.hear(0, word(kind::answer, 1)).empty());
    five.hear(0, word(kind::accept, 2));
    CHECK(five.hear(0, word(kind::answer, 2)) == lines{"halve 0", "change>0 2"});
  }
  SUBCASE("whose values are under way for longer") {
    CHECK(five.hear(0, word(kind::accept, 1)).empty());
    CHECK(five.tick(99ms).empty());
    CHECK(five.tick(1ms) == lines{"answer"});
    CHECK(five.push() == lines{"step", "answer"});
    CHECK(five.tick(5s).empty());
    CHECK(five.hear(0, word(kind::answer, 1)) == lines{"halve 0", "change>0 1"});
    CHECK(five.push() == lines{"step", "ask>0 2", "answer"});
  }
  SUBCASE("which the neighbour's death ends") {
    CHECK(five.lose(0) == lines{"say no neighbour of peer 5 is left: it goes on alone", "answer"});
  }
}

TEST_CASE("pairwise: a peer is taken until the change comes, and its worker goes on") {
  peer_five five{mixing::pairwise};
  five.ask();
  five.meet(0);
  five.meet(1);
  five.hear(0, word(kind::ask, 1));
  CHECK(five.push() == lines{"step"});
  CHECK(five.hear(1, word(kind::ask, 1)) == lines{"busy>1 1"});
  CHECK(five.tick(99ms).empty());
  CHECK(five.tick(1ms) == lines{"answer"});
  five.tick(9s);
  CHECK(five.hear(1, word(kind::ask, 2)) == lines{"busy>1 2"});
  CHECK(five.hear(0, word(kind::change, 1)) == lines{"add change", "done>0 1"});
  CHECK(five.hear(1, word(kind::ask, 3)) == lines{"accept>1 3", "answer>1 3"});
}

TEST_CASE("pairwise: of two peers that ask each other the larger one answers") {
  peer_five five{mixing::pairwise};
  five.ask();
  SUBCASE("this one is the larger one") {
    five.meet(0);
    CHECK(five.push() == lines{"step", "ask>0 1", "answer"});
    CHECK(five.hear(0, word(kind::ask, 1)) == lines{"accept>0 1", "answer>0 1"});
    CHECK(five.hear(0, word(kind::busy, 1)).empty());
    CHECK(five.hear(0, word(kind::change, 1)) == lines{"add change", "done>0 1"});
  }
  SUBCASE("the neighbour is the larger one") {
    five.meet(1);
    CHECK(five.push() == lines{"step", "ask>1 1", "answer"});
    CHECK(five.hear(1, word(kind::ask, 1)) == lines{"busy>1 1"});
    CHECK(five.hear(1, word(kind::answer, 1)) == lines{"halve 1", "change>1 1"});
  }
}

TEST_CASE("pairwise: a change is sent again until it is done, to its incarnation alone") {
  peer_five five{mixing::pairwise};
  five.meet(0);
  five.push();
  five.hear(0, word(kind::answer, 1));
  five.lose(0);
  five.join(0);
  SUBCASE("the same one") {
    CHECK(five.hear(0, greet(0, 2, 2, 1))
          == lines{"greet>0 clock 0 number 2 echo 2", "change>0 1"});
    CHECK(five.hear(0, word(kind::done, 1)) == lines{"forget change of 0"});
  }
  SUBCASE("a successor") {
    CHECK(five.hear(0, greet(0, 1, 2, 2))
          == lines{"greet>0 clock 0 number 2 echo 1", "forget change of 0"});
    CHECK(five.push() == lines{"step", "ask>0 2", "answer"});
  }
}

TEST_CASE("pairwise: a change that comes again is added once, and done again") {
  peer_five five{mixing::pairwise};
  five.ask();
  five.meet(0);
  five.hear(0, word(kind::ask, 4));
  CHECK(five.hear(0, word(kind::change, 4)) == lines{"add change", "done>0 4"});
  five.hear(0, greet(0, 9, 1));
  CHECK(five.hear(0, word(kind::change, 4)) == lines{"done>0 4"});
  // A successor counts its exchanges anew.
  five.hear(0, greet(0, 1, 1, 2));
  CHECK(five.hear(0, word(kind::ask, 4)) == lines{"accept>0 4", "answer>0 4"});
  CHECK(five.hear(0, word(kind::change, 4)) == lines{"add change", "done>0 4"});
}

TEST_CASE("pairwise: a peer without work says busy, once its own exchange has ended") {
  peer_five five{mixing::pairwise};
  five.meet(0);
  five.meet(1);
  CHECK(five.hear(0, word(kind::ask, 1)) == lines{"busy>0 1"}); // No batch yet.
  five.ask();
  const auto last = five.push(0, false);
  CHECK(last.front() == "step");
  CHECK(last.back() == "answer");
  CHECK(five.mix->is_mixing());
  const auto with = static_cast<std::uint32_t>(last.at(1).at(4) - '0');
  five.hear(with, word(kind::accept, 1));
  five.hear(with, word(kind::answer, 1));
  CHECK_FALSE(five.mix->is_mixing());
  CHECK(five.hear(1, word(kind::ask, 5)) == lines{"busy>1 5"});
}

TEST_CASE("pairwise: the neighbour is drawn by the batch, of those that are met") {
  peer_five five{mixing::pairwise}, again{mixing::pairwise};
  std::size_t counts[3] = {};
  for (auto* const each : {&five, &again})
    for (const std::uint32_t neighbour : {0u, 2u})
      each->meet(neighbour);
  for (std::uint64_t batch = 0; batch < 1000; ++batch) {
    const auto drawn = five.push(batch).at(1);
    CHECK(again.push(batch).at(1) == drawn);
    const auto neighbour = static_cast<std::uint32_t>(drawn.at(4) - '0');
    ++counts[neighbour];
    for (auto* const each : {&five, &again})
      each->hear(neighbour, word(kind::busy, batch + 1));
  }
  CHECK(counts[1] == 0);
  CHECK(counts[0] > 430);
  CHECK(counts[2] > 430);
}

TEST_CASE("pairwise: words that cannot be are refused") {
  peer_five five{mixing::pairwise};
  five.ask();
  five.meet(1);
  five.hear(1, word(kind::ask, 3));
  const std::string says = "peer 8 sends ";
  CHECK(five.refuse(1, word(kind::ask, 3))
        == says + "ask with clock 0 and number 3: its number does not grow");
  CHECK(five.refuse(1, word(kind::answer, 1))
        == says + "answer with clock 0 and number 1: this peer did not ask");
  CHECK(five.refuse(1, word(kind::accept, 1))
        == says + "accept with clock 0 and number 1: this peer did not ask");
  CHECK(five.refuse(1, word(kind::busy, 1))
        == says + "busy with clock 0 and number 1: this peer did not ask");
  CHECK(five.refuse(1, word(kind::change, 4))
        == says + "change with clock 0 and number 4: it did not ask");
  CHECK(five.refuse(1, word(kind::release, 4))
        == says + "release with clock 0 and number 4: it did not ask");
  CHECK(five.refuse(1, word(kind::done, 1))
        == says + "done with clock 0 and number 1: no such change was sent");
  CHECK(five.refuse(1, values(1))
        == says + "values with clock 1 and number 0: this peer mixes pairwise");
}

} // namespace

} // namespace troupe::mixer_test
