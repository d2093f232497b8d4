// Tests the flow of one part event by event; part_line_test.cpp runs whole lines of them.
#include "actors/protocol/pipeline/part_flow.hpp"

#include "doctest/doctest.h"
#include "fmt/format.h"

#include <string>
#include <utility>
#include <vector>

namespace troupe::part_flow_test {

namespace {

using namespace std::chrono_literals;
using lines = std::vector<std::string>;
using kind = part_word::kind;
using side = part_side;

/// Writes each effect as a line.
class recorder final : public part_effects {
public:
  void send(part_side to, const part_word& what) override {
    auto line = fmt::format("{} {}", to == side::above ? "up" : "down", to_string(what.what));
    if (what.what == kind::forward || what.what == kind::backward)
      line += fmt::format(" {}", what.micro);
    if (what.what == kind::begin)
      line += fmt::format(" batch {} clock {}", what.step.batch.value, what.step.clock);
    if (what.what == kind::applied)
      line += fmt::format(" loss {}", what.loss);
    all.push_back(line + fmt::format(" of {}.{}", what.of.incarnation, what.of.number));
  }
  void keep_input(std::uint32_t micro) override { add("input", micro); }
  void keep_gradient(std::uint32_t micro) override { add("gradient", micro); }
  void pull(const part_attempt& of, const part_step& /*step*/) override { add("pull", of.number); }
  void compute_forward(std::uint32_t micro) override { add("F", micro); }
  void compute_backward(std::uint32_t micro) override { add("B", micro); }
  void push(const part_attempt& of, const part_step& step) override {
    all.push_back(fmt::format("push {} batch {}", of.number, step.batch.value));
  }
  void done(double loss) override { all.push_back(fmt::format("done {}", loss)); }
  void drop(const part_attempt& which) override { add("drop", which.number); }
  void say(const std::string& line) override { all.push_back("say " + line); }

  lines all;

private:
  void add(const char* what, std::uint64_t number) {
    all.push_back(fmt::format("{} {}", what, number));
  }
};

part_step step_of(std::uint64_t batch, std::uint32_t micros = 2) {
  return {batch_id{batch}, 7, generation_id{1}, micros};
}

/// One part of a line. The first part has incarnation 10, and the part above has 20 + its number.
struct one_part {
  one_part(std::uint32_t number, std::uint32_t parts,
           micro_schedule schedule = {micro_order::one_f_one_b, 0})
      : flow({number, parts, schedule, number == 0 ? 10u : 20u + number}), part(number) {}

  lines take() { return std::exchange(out.all, {}); }
  lines join(side which) {
    flow.joined(which, out);
    return take();
  }
  lines lose(side which) {
    flow.lost(which, out);
    return take();
  }
  lines hear(side from, const part_word& what) {
    const auto fine = flow.heard(from, what, out);
    REQUIRE_MESSAGE(fine, fine.error().text);
    return take();
  }
  std::string refuse(side from, const part_word& what) {
    const auto fine = flow.heard(from, what, out);
    REQUIRE_FALSE(fine);
    CHECK(fine.error().code == errc::malformed);
    CHECK(take().empty());
    return fine.error().text;
  }

  // -- words --
  part_word greet(std::uint64_t number) const { return {.of = {above(), number}}; }
  part_word status(kind what, std::uint64_t number) const {
    return {.what = what, .of = {part == 0 ? 10u : 20u + part, number}};
  }
  static part_word begin(std::uint64_t number, const part_step& step, std::uint64_t of = 10) {
    return {.what = kind::begin, .of = {of, number}, .step = step};
  }
  static part_word micro(kind what, std::uint32_t which, std::uint64_t number = 1,
                         std::uint64_t of = 10) {
    return {.what = what, .micro = which, .of = {of, number}};
  }
  static part_word applied(double loss, std::uint64_t number = 1) {
    return {.what = kind::applied, .of = {10, number}, .loss = loss};
  }

  // -- events --
  lines began(const part_step& step) {
    flow.began(step, out);
    return take();
  }
  lines pulled(std::uint64_t number = 1) {
    flow.pulled({10, number}, out);
    return take();
  }
  lines forward_done() {
    flow.computed_forward(out);
    return take();
  }
  lines backward_done(double loss = 0) {
    flow.computed_backward(loss, out);
    return take();
  }
  lines pushed(std::uint64_t number = 1) {
    flow.pushed({10, number}, out);
    return take();
  }
  lines tick(std::chrono::milliseconds later) {
    now += later;
    flow.tick(now, out);
    return take();
  }
  /// Meets all neighbours; the line below is whole.
  void meet() {
    if (!flow.is_last()) {
      join(side::below);
      hear(side::below, status(kind::ready, 1));
    }
    if (!flow.is_first()) {
      join(side::above);
      REQUIRE(hear(side::above, greet(1)).back() == fmt::format("up ready of {}.1", above()));
    }
  }
  std::uint64_t above() const { return part == 1 ? 10 : 19 + part; }

  part_flow flow;
  std::uint32_t part;
  recorder out;
  time_point now{1s};
};

// -- meetings -----------------------------------------------------------------------------------

TEST_CASE("the first part begins when the line is whole") {
  one_part first{0, 3};
  CHECK(first.began(step_of(5)).empty());
  CHECK(first.join(side::below) == lines{"down greet of 10.1"});
  CHECK(first.hear(side::below, first.status(kind::broken, 1)).empty());
  CHECK_FALSE(first.flow.is_whole());
  CHECK(first.hear(side::below, first.status(kind::ready, 1))
        == lines{"down begin batch 5 clock 7 of 10.1", "F 0"});
  CHECK(first.flow.is_whole());
}

TEST_CASE("a part says how the line below is when it is greeted, and at each change") {
  one_part middle{1, 3};
  CHECK(middle.hear(side::above, middle.greet(1)).empty()); // Its own lane is not there yet.
  CHECK(middle.join(side::above) == lines{"up broken of 10.1"});
  CHECK(middle.join(side::below) == lines{"down greet of 21.1"});
  CHECK(middle.hear(side::below, middle.status(kind::ready, 1)) == lines{"up ready of 10.1"});
  CHECK(middle.hear(side::below, middle.status(kind::ready, 1)).empty());
  CHECK(middle.lose(side::below) == lines{"up broken of 10.1"});
  CHECK(middle.lose(side::below).empty());
  CHECK(middle.hear(side::above, middle.greet(2)) == lines{"up broken of 10.2"});
}

TEST_CASE("a part that lost the part above says so again, though that one noticed nothing") {
  one_part last{1, 2};
  last.meet();
  CHECK(last.lose(side::above).empty());
  CHECK(last.join(side::above) == lines{"up ready of 10.1"});
}

TEST_CASE("an answer to an earlier greeting, or before the lanes are there, has no effect") {
  one_part first{0, 2};
  CHECK(first.hear(side::below, first.status(kind::ready, 1)).empty());
  first.join(side::below);
  first.lose(side::below);
  CHECK(first.join(side::below) == lines{"down greet of 10.2"});
  CHECK(first.hear(side::below, first.status(kind::ready, 1)).empty());
  CHECK(first.began(step_of(5)).empty());
  CHECK(first.hear(side::below, first.status(kind::ready, 2)).size() == 2);
}

TEST_CASE("a successor's greeting ends the attempt of the dead part above") {
  one_part last{1, 2};
  last.meet();
  CHECK(last.hear(side::above, one_part::begin(1, step_of(5))) == lines{"pull 1"});
  CHECK(last.hear(side::above, last.greet(2)) == lines{"drop 1", "up ready of 10.2"});
}

// -- the way of a batch -------------------------------------------------------------------------

TEST_CASE("the first part of 1f1b keeps an input for each part, and goes back when it can") {
  one_part first{0, 2};
  first.meet();
  CHECK(first.began(step_of(5, 3)) == lines{"down begin batch 5 clock 7 of 10.1", "F 0"});
  CHECK(first.forward_done() == lines{"down forward 0 of 10.1", "F 1"});
  CHECK(first.hear(side::below, one_part::micro(kind::backward, 0)) == lines{"gradient 0"});
  CHECK(first.forward_done() == lines{"down forward 1 of 10.1", "B 0"});
  CHECK(first.backward_done() == lines{"F 2"});
  CHECK(first.forward_done() == lines{"down forward 2 of 10.1"});
  CHECK(first.hear(side::below, one_part::micro(kind::backward, 1)) == lines{"gradient 1", "B 1"});
  CHECK(first.backward_done().empty());
  CHECK(first.hear(side::below, one_part::micro(kind::backward, 2)) == lines{"gradient 2", "B 2"});
  CHECK(first.hear(side::below, one_part::applied(0.5)).empty());
  CHECK(first.backward_done() == lines{"done 0.5"});
  CHECK(first.flow.present() == nullptr);
  CHECK(first.began(step_of(6)) == lines{"down begin batch 6 clock 7 of 10.2", "F 0"});
}

TEST_CASE("a part computes micro-batches ahead for each link below it") {
  one_part first{0, 2, {micro_order::one_f_one_b, 1}};
  first.meet();
  first.began(step_of(5, 5));
  CHECK(first.forward_done() == lines{"down forward 0 of 10.1", "F 1"});
  CHECK(first.forward_done() == lines{"down forward 1 of 10.1", "F 2"});
  CHECK(first.forward_done() == lines{"down forward 2 of 10.1"}); // It keeps three.
  CHECK(first.hear(side::below, one_part::micro(kind::backward, 0)) == lines{"gradient 0", "B 0"});
  CHECK(first.backward_done() == lines{"F 3"});
  for (const std::uint32_t ahead : {0u, 1u, 2u, 1000u}) {
    CAPTURE(ahead);
    const micro_schedule one{micro_order::one_f_one_b, ahead};
    CHECK(one.kept_max(0, 4, 9999) == 4 + 3 * ahead);
    CHECK(one.kept_max(2, 4, 9999) == 2 + ahead);
    CHECK(one.kept_max(3, 4, 9999) == 1); // The last one goes back at once.
    CHECK(one.kept_max(0, 4, 3) == 3);
    CHECK(one.held_max(0, 4, 9999) == 4 + 3 * ahead);
    CHECK(one.held_max(3, 4, 9999) == 2 + ahead); // Part 2 keeps so many.
    CHECK(micro_schedule{micro_order::fill_drain, ahead}.kept_max(3, 4, 9) == 9);
  }
}

TEST_CASE("the first part is not done before all later parts have applied the batch") {
  one_part first{0, 2};
  first.meet();
  first.began(step_of(5, 1));
  first.forward_done();
  first.hear(side::below, one_part::micro(kind::backward, 0));
  CHECK(first.backward_done().empty());
  CHECK(first.hear(side::below, one_part::applied(0.25)) == lines{"done 0.25"});
}

TEST_CASE("with fill-drain all micro-batches go forward before the first goes back") {
  one_part middle{1, 3, {micro_order::fill_drain, 0}};
  middle.meet();
  CHECK(middle.hear(side::above, one_part::begin(1, step_of(5)))
        == lines{"down begin batch 5 clock 7 of 10.1", "pull 1"});
  CHECK(middle.hear(side::above, one_part::micro(kind::forward, 0)) == lines{"input 0"});
  CHECK(middle.pulled() == lines{"F 0"});
  CHECK(middle.forward_done() == lines{"down forward 0 of 10.1"});
  CHECK(middle.hear(side::below, one_part::micro(kind::backward, 0)) == lines{"gradient 0"});
  CHECK(middle.hear(side::above, one_part::micro(kind::forward, 1)) == lines{"input 1", "F 1"});
  CHECK(middle.forward_done() == lines{"down forward 1 of 10.1", "B 0"});
  CHECK(middle.backward_done() == lines{"up backward 0 of 10.1"});
  CHECK(middle.hear(side::below, one_part::micro(kind::backward, 1)) == lines{"gradient 1", "B 1"});
  CHECK(middle.backward_done() == lines{"up backward 1 of 10.1", "push 1 batch 5"});
  CHECK(middle.pushed().empty()); // The part below has not applied it.
  CHECK(middle.hear(side::below, one_part::applied(2))
        == lines{"up applied loss 2 of 10.1", "drop 1"});
}

TEST_CASE("the last part adds up the loss, and needs no gradient from below") {
  one_part last{2, 3};
  last.meet();
  last.hear(side::above, one_part::begin(1, step_of(5)));
  last.hear(side::above, one_part::micro(kind::forward, 0));
  last.hear(side::above, one_part::micro(kind::forward, 1));
  CHECK(last.pulled() == lines{"F 0"});
  CHECK(last.forward_done() == lines{"B 0"});
  CHECK(last.backward_done(0.25) == lines{"up backward 0 of 10.1", "F 1"});
  CHECK(last.forward_done() == lines{"B 1"});
  CHECK(last.backward_done(0.5) == lines{"up backward 1 of 10.1", "push 1 batch 5"});
  CHECK(last.pushed() == lines{"up applied loss 0.75 of 10.1", "drop 1"});
}

TEST_CASE("applied waits for the own push") {
  one_part middle{1, 3};
  middle.meet();
  middle.hear(side::above, one_part::begin(1, step_of(5, 1)));
  middle.pulled();
  middle.hear(side::above, one_part::micro(kind::forward, 0));
  middle.forward_done();
  middle.hear(side::below, one_part::micro(kind::backward, 0));
  CHECK(middle.hear(side::below, one_part::applied(1)).empty());
  CHECK(middle.backward_done() == lines{"up backward 0 of 10.1", "push 1 batch 5"});
  CHECK(middle.pushed() == lines{"up applied loss 1 of 10.1", "drop 1"});
}

TEST_CASE("a line of one part is a worker that cuts its batches") {
  one_part only{0, 1};
  CHECK(only.began(step_of(5)) == lines{"F 0"});
  CHECK(only.forward_done() == lines{"B 0"});
  CHECK(only.backward_done(0.5) == lines{"F 1"});
  CHECK(only.forward_done() == lines{"B 1"});
  CHECK(only.backward_done(0.25) == lines{"done 0.75"});
}

TEST_CASE("a failed pull and a failed push are tried again after a pause") {
  one_part last{1, 2};
  last.meet();
  last.hear(side::above, one_part::begin(1, step_of(5, 1)));
  last.flow.failed({10, 1}, errc::timed_out, last.now);
  CHECK(last.tick(99ms).empty());
  CHECK(last.tick(1ms) == lines{"pull 1"});
  CHECK(last.tick(200ms).empty());
  last.pulled();
  last.hear(side::above, one_part::micro(kind::forward, 0));
  last.forward_done();
  CHECK(last.backward_done(1) == lines{"up backward 0 of 10.1", "push 1 batch 5"});
  last.flow.failed({10, 1}, errc::rolled_back, last.now);
  CHECK(last.tick(100ms) == lines{"push 1 batch 5"});
  last.flow.failed({10, 1}, errc::overloaded, last.now);
  CHECK(last.hear(side::above, one_part::begin(2, step_of(5, 1))) == lines{"drop 1", "pull 2"});
  CHECK(last.tick(100ms).empty());
}

TEST_CASE("a part whose worker was replaced asks no more, and waits for the end of the attempt") {
  one_part last{1, 2};
  last.meet();
  last.hear(side::above, one_part::begin(1, step_of(5, 1)));
  last.flow.failed({10, 1}, errc::fenced, last.now);
  CHECK(last.tick(10min).empty());
  CHECK(last.hear(side::above, last.greet(2)) == lines{"drop 1", "up ready of 10.2"});
}

// -- deaths -------------------------------------------------------------------------------------

TEST_CASE("when a later part is lost, the batch begins anew with the next attempt") {
  one_part first{0, 3};
  first.meet();
  first.began(step_of(5));
  CHECK(first.hear(side::below, first.status(kind::broken, 1))
        == lines{"drop 1", "down drop of 10.1",
                 "say a later part has lost batch 5: it begins anew when the line is whole"});
  CHECK(first.forward_done().empty()); // Of the attempt that has ended.
  CHECK(first.hear(side::below, first.status(kind::ready, 1))
        == lines{"down begin batch 5 clock 7 of 10.2", "F 0"});
}

TEST_CASE("ready in the middle of an attempt means that the part below has lost it") {
  one_part middle{1, 3};
  middle.meet();
  middle.hear(side::above, one_part::begin(1, step_of(5)));
  CHECK(middle.hear(side::below, middle.status(kind::ready, 1))
        == lines{"drop 1", "down drop of 10.1", "up ready of 10.1"});
  one_part first{0, 3};
  first.meet();
  first.began(step_of(5));
  CHECK(first.hear(side::below, first.status(kind::ready, 1))
        == lines{"drop 1", "down drop of 10.1", "say a later part has lost batch 5: it begins anew",
                 "down begin batch 5 clock 7 of 10.2"});
  CHECK(first.forward_done() == lines{"F 0"}); // One computation at a time.
}

TEST_CASE("a part whose later parts have applied the batch does not need them any more") {
  one_part middle{1, 3};
  middle.meet();
  middle.hear(side::above, one_part::begin(1, step_of(5, 1)));
  middle.pulled();
  middle.hear(side::above, one_part::micro(kind::forward, 0));
  middle.forward_done();
  middle.hear(side::below, one_part::micro(kind::backward, 0));
  middle.hear(side::below, one_part::applied(1));
  CHECK(middle.lose(side::below).empty());
  CHECK(middle.backward_done() == lines{"up backward 0 of 10.1", "push 1 batch 5"});
  CHECK(middle.pushed() == lines{"up applied loss 1 of 10.1", "drop 1", "up broken of 10.1"});
}

TEST_CASE("a part drops the attempt when the part above is lost") {
  one_part last{1, 2};
  last.meet();
  last.hear(side::above, one_part::begin(1, step_of(5)));
  last.pulled();
  last.hear(side::above, one_part::micro(kind::forward, 0));
  CHECK(last.lose(side::above) == lines{"drop 1"});
  CHECK(last.hear(side::above, one_part::micro(kind::forward, 1)).empty());
  CHECK(last.forward_done().empty());
}

TEST_CASE("a part does not say ready for an attempt that the next one ended") {
  one_part last{1, 2};
  last.meet();
  last.hear(side::above, one_part::begin(1, step_of(5, 1)));
  CHECK(last.hear(side::above, one_part::begin(2, step_of(6, 1))) == lines{"drop 1", "pull 2"});
  last.pulled(2);
  last.hear(side::above, one_part::micro(kind::forward, 0, 2));
  last.forward_done();
  last.backward_done(1);
  CHECK(last.pushed(2) == lines{"up applied loss 1 of 10.2", "drop 2"});
}

TEST_CASE("words and answers of an earlier attempt have no effect") {
  one_part middle{1, 3};
  middle.meet();
  middle.hear(side::above, one_part::begin(4, step_of(5)));
  middle.hear(side::above, one_part::begin(1, step_of(5), 11)); // Of a successor.
  CHECK(middle.pulled(4).empty());
  middle.flow.pulled({11, 1}, middle.out);
  CHECK(middle.hear(side::above, one_part::micro(kind::forward, 0, 4)).empty());
  CHECK(middle.hear(side::above, one_part::micro(kind::forward, 0, 1, 11))
        == lines{"input 0", "F 0"});
  middle.forward_done();
  CHECK(middle.hear(side::below, one_part::micro(kind::backward, 0, 4)).empty());
  CHECK(middle.hear(side::below, one_part::applied(1, 4)).empty());
  CHECK(middle.pushed(4).empty());
}

TEST_CASE("begin has no effect while the line below is broken") {
  one_part middle{1, 3};
  middle.meet();
  middle.lose(side::below);
  CHECK(middle.hear(side::above, one_part::begin(1, step_of(5))).empty());
  CHECK(middle.flow.present() == nullptr);
}

TEST_CASE("a batch that the worker does not want any more is dropped") {
  one_part first{0, 2};
  first.meet();
  first.began(step_of(5));
  first.flow.dropped(first.out);
  CHECK(first.take() == lines{"drop 1", "down drop of 10.1"});
  CHECK(first.forward_done().empty());
  CHECK(first.began(step_of(6)) == lines{"down begin batch 6 clock 7 of 10.2", "F 0"});
  first.flow.dropped(first.out);
  first.take();
  first.flow.dropped(first.out); // Without a step.
  CHECK(first.take().empty());
}

TEST_CASE("each later part drops the batch that the line drops, and is ready for the next one") {
  one_part middle{1, 3}, last{2, 3};
  middle.meet();
  middle.hear(side::above, one_part::begin(2, step_of(5)));
  CHECK(middle.hear(side::above, one_part::micro(kind::drop, 0, 1)).empty()); // An earlier one.
  CHECK(middle.hear(side::above, one_part::micro(kind::drop, 0, 2))
        == lines{"drop 2", "down drop of 10.2"});
  CHECK(middle.hear(side::above, one_part::begin(3, step_of(6)))
        == lines{"down begin batch 6 clock 7 of 10.3", "pull 3"});
  last.meet();
  last.hear(side::above, one_part::begin(2, step_of(5)));
  last.flow.failed({10, 2}, errc::rolled_back, last.now);
  CHECK(last.hear(side::above, one_part::micro(kind::drop, 0, 2)) == lines{"drop 2"});
  CHECK(last.tick(100ms).empty());
}

TEST_CASE("parts below a lost one drop its attempt, unless they have applied the batch") {
  one_part middle{1, 3};
  middle.meet();
  middle.hear(side::above, one_part::begin(1, step_of(5, 1)));
  CHECK(middle.lose(side::above) == lines{"drop 1", "down drop of 10.1"});
  middle.join(side::above);
  middle.hear(side::above, one_part::begin(2, step_of(5, 1)));
  middle.flow.pulled({10, 2}, middle.out);
  middle.hear(side::above, one_part::micro(kind::forward, 0, 2));
  middle.forward_done();
  middle.hear(side::below, one_part::micro(kind::backward, 0, 2));
  middle.hear(side::below, one_part::applied(1, 2));
  CHECK(middle.lose(side::above) == lines{"drop 2"});
}

TEST_CASE("words that cannot be are refused") {
  one_part middle{1, 3}, first{0, 2}, last{1, 2};
  middle.meet();
  CHECK(middle.refuse(side::above, {}).ends_with("number and incarnation are not 0"));
  middle.refuse(side::above, one_part::begin(1, step_of(5, 0)));
  middle.refuse(side::above, one_part::applied(1));
  middle.refuse(side::below, middle.greet(3));
  middle.hear(side::above, one_part::begin(1, step_of(5)));
  middle.pulled();
  CHECK(middle.refuse(side::above, one_part::micro(kind::forward, 1))
        == "the part above part 1 sends forward of micro-batch 1 in 1: another micro-batch is "
           "next");
  middle.refuse(side::below, one_part::micro(kind::backward, 0)); // Before it went down.
  middle.refuse(side::below, one_part::applied(1));
  CHECK(first.refuse(side::above, first.greet(1)).ends_with("there is no such part"));
  last.refuse(side::below, last.status(kind::ready, 1));
}

} // namespace

} // namespace troupe::part_flow_test
