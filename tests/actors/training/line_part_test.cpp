#include "tests/actors/training/line_fixture.hpp"

#include "base/user_code.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>

namespace line_part_test {

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr micro_order orders[] = {micro_order::fill_drain, micro_order::one_f_one_b};

/// Returns whether the pieces are the gradients of these tables to the byte.
bool are_equal(const std::vector<piece>& pieces, const std::vector<table_id>& tables,
               const line_gradient& expected) {
  if (pieces.size() != tables.size())
    return false;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const auto& wanted = expected.tables[tables[i].value];
    const auto& found = pieces[i];
    if (found.where != range{tables[i], 0, wanted.size()}
        || std::memcmp(found.values.get(), wanted.data(), wanted.size() * sizeof(float)) != 0)
      return false;
  }
  return true;
}

/// Checks the last outcome, and the last pushes of all later parts.
void check_batch(const whole_line& line, const line_gradient& expected) {
  const auto parts = static_cast<std::uint32_t>(line.members.size());
  REQUIRE(line.failures().empty());
  const auto& outcomes = line.members[0]->outcomes;
  REQUIRE_FALSE(outcomes.empty());
  CHECK_FALSE(outcomes.back().failed);
  CHECK(outcomes.back().finite);
  CHECK(outcomes.back().loss == doctest::Approx(expected.loss));
  CHECK(are_equal(outcomes.back().pieces, line_tables(0), expected));
  REQUIRE(line.pushes.size() >= parts - 1);
  for (std::uint32_t p = 1; p < parts; ++p) {
    const auto of_part = [&](const push_request& x) { return x.tables == line_tables(p); };
    const auto found = std::find_if(line.pushes.rbegin(), line.pushes.rend(), of_part);
    REQUIRE(found != line.pushes.rend());
    CHECK(are_equal(found->pieces, line_tables(p), expected));
  }
}

/// A part that does as it is told where something is set, and else as its layer.
struct scripted_part final : part {
  std::function<void(const micro_batch&, part_output&)> on_forward = {};
  std::function<double(mutable_tensors, std::span<float>)> on_backward = {};
  std::unique_ptr<part> else_ = {};

  void forward(const micro_batch& micro, const_tensors values, std::span<const float> in,
               part_output& out) override {
    if (on_forward)
      on_forward(micro, out);
    else
      else_->forward(micro, values, in, out);
  }
  double backward(const micro_batch& micro, const_tensors values, std::span<const float> in,
                  std::span<const float> out_gradient, mutable_tensors gradients,
                  std::span<float> in_gradient) override {
    const auto loss = else_->backward(micro, values, in, out_gradient, gradients, in_gradient);
    return on_backward ? on_backward(gradients, in_gradient) : loss;
  }
};

using forward_script = std::function<void(const micro_batch&, part_output&)>;
using backward_script = std::function<double(mutable_tensors, std::span<float>)>;

/// Returns makers of three parts, of which one is scripted.
whole_line::makers scripted(std::uint32_t which, forward_script forward, backward_script backward) {
  return [=](std::uint32_t number) -> part_maker {
    return [=]() -> std::unique_ptr<part> {
      auto layer =
        std::make_unique<linear_part>(line_widths[number], line_widths[number + 1], number == 2);
      if (number != which)
        return layer;
      auto made = std::make_unique<scripted_part>();
      made->on_forward = forward;
      made->on_backward = backward;
      made->else_ = std::move(layer);
      return made;
    };
  };
}

/// Computes the first batch with a line that has a wrong part, and returns its failures.
std::vector<failure> failures_of(std::uint32_t which, forward_script forward,
                                 backward_script backward = {}) {
  whole_line line{3, 3, micro_order::one_f_one_b,
                  scripted(which, std::move(forward), std::move(backward))};
  line.compute(1, {0});
  line.run();
  CHECK(line.pushes.empty());
  if (which == 0) { // The worker gets an outcome, too.
    REQUIRE(line.members[0]->outcomes.size() == 1);
    CHECK(line.members[0]->outcomes[0].failed == line.failures().front());
  } else {
    CHECK(line.members[0]->outcomes.empty());
  }
  return line.failures();
}

/// Puts "line:1's " before "part 1".
std::string full_name(const std::string& part) {
  return "line:" + part.substr(std::string{"part "}.size(), 1) + "'s " + part;
}

std::vector<failure> diverged(const std::string& part, const std::string& cause) {
  return {{errc::job_failed, full_name(part) + ": " + divergence::text() + " (" + cause + ")"}};
}

std::vector<failure> wrong(const std::string& text) {
  return {{errc::invalid_argument, full_name(text)}};
}

} // namespace

TEST_CASE("a line has the gradients of the whole, to the byte, with each order and each cut") {
  for (const std::uint32_t parts : {1, 2, 3})
    for (const micro_schedule schedule : {micro_schedule{micro_order::fill_drain, 0},
                                          {micro_order::one_f_one_b, 0},
                                          {micro_order::one_f_one_b, 1},
                                          {micro_order::one_f_one_b, 2}})
      for (const std::uint32_t micros : {1, 2, 3, 8}) {
        CAPTURE(parts);
        CAPTURE(micros);
        whole_line line{parts, micros, schedule.order, {}, 0, schedule.ahead};
        for (std::uint64_t batch = 0; batch < 4; ++batch) { // Batch 2 has one sample.
          line.compute(batch + 1, {batch});
          line.run();
          REQUIRE(line.members[0]->outcomes.size() == batch + 1);
          CHECK(line.members[0]->outcomes.back().samples == (batch == 2 ? 1 : 3));
          check_batch(line, whole_gradient(parts, {batch}, micros));
        }
        CHECK(line.pushes.size() == 4 * (parts - 1));
        CHECK(line.members[0]->said.empty());
      }
}

TEST_CASE("later parts pull and push their own tables under the header of the worker") {
  whole_line line{2, 2, micro_order::one_f_one_b};
  line.compute(5, {1}, 3);
  line.run();
  step_header header{{4}, {10}, {3}, {1}, 5};
  REQUIRE(line.pulls.size() == 1);
  CHECK(line.pulls[0].step == header);
  CHECK(line.pulls[0].ranges == std::vector<range>{{{2}, 0, 20}, {{3}, 0, 4}});
  CHECK_FALSE(line.pulls[0].latest);
  header.is_partial = true;
  REQUIRE(line.pushes.size() == 1);
  CHECK(line.pushes[0].step == header);
  CHECK(line.pushes[0].tables == std::vector<table_id>{{3}, {2}});
  CHECK(line.pushes[0].base_version == 7);
  REQUIRE(line.members[0]->outcomes.size() == 1);
  CHECK(line.members[0]->outcomes[0].number == 5);
  CHECK(line.members[0]->outcomes[0].base_version == 7);
}

TEST_CASE("tasks are done in order") {
  whole_line line{2, 2, micro_order::one_f_one_b};
  for (std::uint64_t batch = 0; batch < 3; ++batch)
    line.compute(batch + 1, {batch});
  line.run();
  const auto& outcomes = line.members[0]->outcomes;
  REQUIRE(outcomes.size() == 3);
  for (std::uint64_t batch = 0; batch < 3; ++batch) {
    CHECK(outcomes[batch].number == batch + 1);
    CHECK(are_equal(outcomes[batch].pieces, line_tables(0), whole_gradient(2, {batch}, 2)));
  }
}

TEST_CASE("words that do not fit end the job") {
  whole_line other{2, 3, micro_order::one_f_one_b, {}, 2};
  other.compute(1, {0});
  other.run();
  CHECK(other.failures()
        == std::vector<failure>{{errc::malformed,
                                 "line:1's part 1: the part above has 3 micro-batches in a "
                                 "batch, and this one has 2"}});
  const auto heard = [](std::vector<tensor> tensors) {
    whole_line line{2, 1, micro_order::one_f_one_b};
    line.compute(1, {0});
    while (line.members[1]->asked.empty() && line.pulls.empty())
      line.step();
    const part_word word{.what = part_word::kind::forward, .of = {10, 1}};
    line.members[1]->line.above()->from_above.take({word, std::move(tensors)});
    line.run();
    CHECK(line.pushes.empty());
    return line.failures();
  };
  CHECK(heard({tensor{std::vector<float>(7)}})
        == std::vector<failure>{
          {errc::malformed, "line:1's part 1: the part above sends 7 floats for 3 samples"}});
  CHECK(heard({})
        == std::vector<failure>{
          {errc::malformed, "line:1's part 1: a word forward of another part has 0 tensors"}});
}

TEST_CASE("parcels without credit wait, and stay in order") {
  whole_line line{3, 3, micro_order::fill_drain}; // A lane takes one parcel at a time.
  line.compute(1, {0});
  line.run();
  CHECK(line.refused_parcels() > 0);
  check_batch(line, whole_gradient(3, {0}, 3));
}

TEST_CASE("a neighbour lost in the middle begins anew, and gives the same bytes") {
  const auto expected = whole_gradient(3, {0}, 3);
  int begun_anew = 0;
  for (const auto order : orders)
    for (const std::uint32_t who : {1, 2})
      for (int steps = 0; steps < 40; ++steps) {
        CAPTURE(who);
        CAPTURE(steps);
        whole_line line{3, 3, order};
        line.compute(1, {0});
        for (int i = 0; i < steps; ++i)
          line.step();
        const bool was_done = !line.members[0]->outcomes.empty();
        line.restart(who);
        line.run();
        REQUIRE(line.members[0]->outcomes.size() == 1);
        check_batch(line, expected);
        for (const auto& each : line.members[0]->said) {
          CHECK(each == "a later part has lost batch 0: it begins anew when the line is whole");
          CHECK_FALSE(was_done);
          ++begun_anew;
        }
        line.compute(2, {1});
        line.run();
        check_batch(line, whole_gradient(3, {1}, 3));
      }
  CHECK(begun_anew > 20);
}

TEST_CASE("the successor of a dead first part computes with the parts that are there") {
  for (int steps = 0; steps < 40; ++steps) {
    CAPTURE(steps);
    whole_line line{3, 3, micro_order::one_f_one_b};
    line.compute(1, {0});
    for (int i = 0; i < steps; ++i)
      line.step();
    line.restart(0);
    line.run();
    line.compute(1, {1});
    line.run();
    REQUIRE(line.members[0]->outcomes.size() == 1);
    check_batch(line, whole_gradient(3, {1}, 3));
    CHECK(line.pushes.back().step.incarnation.value == 11);
  }
}

TEST_CASE("lanes that break and come back lose no batch") {
  for (const std::uint32_t upper : {0, 1})
    for (int steps = 0; steps < 30; ++steps) {
      CAPTURE(steps);
      whole_line line{3, 3, micro_order::one_f_one_b};
      line.compute(1, {0});
      for (int i = 0; i < steps; ++i)
        line.step();
      line.rejoin(upper);
      line.run();
      REQUIRE(line.members[0]->outcomes.size() == 1);
      check_batch(line, whole_gradient(3, {0}, 3));
    }
}

TEST_CASE("an error that time cures is repeated after 100 ms") {
  whole_line line{2, 2, micro_order::one_f_one_b};
  std::vector<time_point> at;
  int left = 4;
  line.answer = [&](const request& what) -> result<reply> {
    at.push_back(line.now);
    if (left-- % 2 == 0)
      return {errc::not_ready, "it restores"};
    return line.applied(what);
  };
  line.compute(1, {0});
  line.run();
  check_batch(line, whole_gradient(2, {0}, 2));
  REQUIRE(at.size() == 4); // Two pulls and two pushes.
  CHECK(at[1] - at[0] >= part_retry_pause);
  CHECK(at[3] - at[2] >= part_retry_pause);
}

TEST_CASE("a request that a shard's new generation refuses is made again") {
  whole_line line{2, 2, micro_order::one_f_one_b};
  int left = 4;
  line.answer = [&](const request& what) -> result<reply> {
    if (left-- % 2 == 0)
      return {errc::rolled_back, "the server restores its partitions"};
    return line.applied(what);
  };
  line.compute(1, {0});
  line.run();
  CHECK(line.failures().empty());
  check_batch(line, whole_gradient(2, {0}, 2));
}

TEST_CASE("a push that is refused is not repeated once the worker has dropped the batch") {
  for (const auto code : {errc::fenced, errc::rolled_back}) {
    CAPTURE(to_string(code));
    whole_line line{3, 2, micro_order::one_f_one_b};
    int refused = 0;
    line.answer = [&](const request& what) -> result<reply> {
      if (!what.push || what.push->step.batch != batch_id{0} || what.push->tables != line_tables(2))
        return line.applied(what);
      ++refused;
      return {code, "too late"};
    };
    line.compute(1, {0});
    for (int i = 0; i < 100; ++i) // One second.
      line.step();
    CHECK(refused > 0);
    CHECK((refused == 1) == (code == errc::fenced)); // A later push would be fenced, too.
    const int before = refused;
    line.members[0]->line.dropped(1);
    line.run(); // It ends, as nothing is repeated.
    line.compute(2, {1});
    line.run();
    check_batch(line, whole_gradient(3, {1}, 2));
    CHECK(refused == before);
  }
}

TEST_CASE("a task that the worker drops ends at once, and the next one has its own bytes") {
  const failure dropped{errc::rolled_back, "the worker dropped the batch"};
  for (int steps = 0; steps < 40; ++steps)
    for (const bool has_next : {false, true}) {
      CAPTURE(steps);
      CAPTURE(has_next);
      whole_line line{3, 3, micro_order::one_f_one_b};
      auto& first = *line.members[0];
      line.compute(1, {0});
      if (has_next)
        line.compute(2, {1}, 2);
      for (int i = 0; i < steps && first.outcomes.empty(); ++i)
        line.step();
      const bool was_done = !first.outcomes.empty();
      first.line.dropped(1);
      REQUIRE(first.outcomes.size() == 1);
      CHECK(first.outcomes[0].number == 1);
      CHECK(first.outcomes[0].failed == (was_done ? std::nullopt : std::optional{dropped}));
      if (!has_next)
        line.compute(2, {1}, 2);
      line.run();
      REQUIRE(first.outcomes.size() == 2);
      check_batch(line, whole_gradient(3, {1}, 3));
      CHECK(line.pushes.back().step.generation.value == 2);
      CHECK(first.said.empty()); // No part was lost.
      CHECK(line.failures().empty());
    }
  whole_line line{2, 2, micro_order::one_f_one_b};
  line.compute(1, {0});
  line.compute(2, {1});
  line.members[0]->line.dropped(2); // It waits for the first one.
  line.members[0]->line.dropped(3); // There is none.
  line.run();
  const auto& outcomes = line.members[0]->outcomes;
  REQUIRE(outcomes.size() == 2);
  CHECK(outcomes[0].number == 2);
  CHECK(outcomes[0].failed == dropped);
  check_batch(line, whole_gradient(2, {0}, 2));
}

TEST_CASE("other errors of the store end the job") {
  whole_line line{2, 2, micro_order::one_f_one_b};
  line.answer = [](const request&) -> result<reply> { return {errc::shape_mismatch, "no"}; };
  line.compute(1, {0});
  line.run();
  CHECK(line.failures() == std::vector<failure>{{errc::shape_mismatch, "line:1's part 1: no"}});
}

TEST_CASE("a part that is not last makes an output, of one width, and the last one makes none") {
  const forward_script nothing = [](const micro_batch&, part_output&) {};
  CHECK(failures_of(1, nothing)
        == wrong("part 1: it makes no output: call out.of_width() in forward()"));
  CHECK(failures_of(0, nothing)
        == wrong("part 0: it makes no output: call out.of_width() in forward()"));
  CHECK(failures_of(2, [](const micro_batch&, part_output& out) { out.of_width(1); })
        == wrong("part 2: it is the last one, and makes an output"));
  CHECK(failures_of(1,
                    [](const micro_batch& micro, part_output& out) {
                      std::ranges::fill(out.of_width(micro.number < 2 ? 4 : 3), 0.0f);
                    })
        == wrong("part 1: its output has a width of 3, and had one of 4 before"));
  CHECK(failures_of(1, [](const micro_batch&, part_output& out) { out.of_width(0); })
        == std::vector<failure>{
          {errc::job_failed, "line:1's part 1: an output has a width of 1 or more"}});
}

TEST_CASE("calls of a part have the names of its process and of the part") {
  std::vector<std::optional<std::string>> calls;
  const auto note = [&] { calls.push_back(current_call()); };
  whole_line line{3, 1, micro_order::one_f_one_b,
                  scripted(
                    1,
                    [&](const micro_batch&, part_output& out) {
                      note();
                      std::ranges::fill(out.of_width(4), 0.0f);
                    },
                    [&](mutable_tensors, std::span<float>) {
                      note();
                      return 0.0;
                    })};
  line.compute(1, {0});
  line.run();
  CHECK(calls == std::vector<std::optional<std::string>>(2, "line:1's part 1"));
}

TEST_CASE("elements that a part does not write are named") {
  CHECK(failures_of(1,
                    [](const micro_batch&, part_output& out) {
                      auto values = out.of_width(8);
                      for (std::size_t i = 0; i < values.size(); ++i)
                        if (i != 7)
                          values[i] = 0;
                    })
        == wrong("part 1: it wrote no element 7 of its output"));
  const auto forget = [](std::span<float> in_gradient) {
    const part_output fresh{1};
    part_output other{1};
    in_gradient[2] = other.of_width(1)[0];
  };
  CHECK(failures_of(1, {},
                    [&](mutable_tensors, std::span<float> in_gradient) {
                      forget(in_gradient);
                      return 0.0;
                    })
        == wrong("part 1: it wrote no element 2 of the gradient of its input"));
  CHECK(failures_of(2, {},
                    [&](mutable_tensors gradients, std::span<float>) {
                      forget(gradients[1]);
                      return 0.0;
                    })
        == wrong("part 2: it wrote no element 2 of the gradient of its table 'w2'"));
}

TEST_CASE("an exception of a part ends the job with its text") {
  CHECK(
    failures_of(1, [](const micro_batch&, part_output&) { throw std::runtime_error{"no data"}; })
    == std::vector<failure>{{errc::job_failed, "line:1's part 1: no data"}});
  CHECK(failures_of(2, {},
                    [](mutable_tensors, std::span<float>) -> double {
                      throw std::runtime_error{"no memory"};
                    })
        == std::vector<failure>{{errc::job_failed, "line:2's part 2: no memory"}});
  const auto made = [](const part_maker& make) {
    try {
      whole_line{2, 1, micro_order::fill_drain, [&](std::uint32_t) { return make; }};
    } catch (const std::runtime_error& why) {
      return std::string{why.what()};
    }
    return std::string{};
  };
  CHECK(made([]() -> std::unique_ptr<part> { return nullptr; })
        == "line:0's part 0: its maker made no part");
  CHECK(made([]() -> std::unique_ptr<part> { throw std::runtime_error{"no file"}; })
        == "line:0's part 0: no file");
}

TEST_CASE("a part whose gradient is not finite changes no values, and too many end the job") {
  const backward_script infinite = [](mutable_tensors gradients, std::span<float>) {
    gradients[0][0] = std::numeric_limits<float>::infinity();
    return 0.0;
  };
  whole_line first{3, 2, micro_order::one_f_one_b, scripted(0, {}, infinite)};
  first.compute(1, {0});
  first.run();
  REQUIRE(first.members[0]->outcomes.size() == 1);
  CHECK_FALSE(first.members[0]->outcomes[0].finite); // The worker counts those in a row.
  CHECK(first.members[0]->outcomes[0].pieces.empty());
  REQUIRE(first.pushes.size() == 2);
  CHECK(first.pushes[0].pieces.size() == 2);

  whole_line line{3, 2, micro_order::one_f_one_b, scripted(1, {}, infinite)};
  for (std::uint64_t batch = 0; batch < 20; ++batch) {
    REQUIRE(line.failures().empty());
    line.compute(batch + 1, {batch});
    line.run();
  }
  CHECK(line.members[0]->outcomes.size() == 19);
  for (const auto& each : line.members[0]->outcomes)
    CHECK(each.finite);
  for (const auto& each : line.pushes)
    CHECK(each.pieces.empty() == (each.tables == line_tables(1)));
  CHECK(line.failures()
        == diverged("part 1", "backward() wrote infinity to the gradient of its table 'b1'"));
}

TEST_CASE("the part that makes a value not finite ends the job, and its neighbours do not") {
  const forward_script forward = [](const micro_batch& work, part_output& out) {
    auto values = out.of_width(4);
    std::ranges::fill(values, 1.0f);
    if (work.number == 1)
      values[2] = std::numeric_limits<float>::quiet_NaN();
  };
  const forward_script first_forward = [](const micro_batch& work, part_output& out) {
    std::ranges::fill(out.of_width(5), work.number == 1 ? HUGE_VALF : 1.0f);
  };
  const backward_script backward = [](mutable_tensors, std::span<float> in_gradient) {
    in_gradient.back() = -HUGE_VALF;
    return 0.0;
  };
  struct wrong_part {
    std::uint32_t which;
    forward_script forward;
    backward_script backward;
    std::string cause;
    std::size_t sample;
  };
  sampler batches{line_job(3)};
  for (const auto& x :
       {wrong_part{1, forward, {}, "forward() wrote NaN to its output", 2},
        wrong_part{0, first_forward, {}, "forward() wrote infinity to its output", 2},
        wrong_part{2, {}, backward, "backward() wrote infinity to the gradient of its input", 1}}) {
    CAPTURE(x.which);
    // Micro-batches of a batch have two samples and one.
    whole_line line{3, 2, micro_order::one_f_one_b, scripted(x.which, x.forward, x.backward)};
    for (std::uint64_t batch = 0; batch < 20; ++batch) {
      REQUIRE(line.failures().empty());
      line.compute(batch + 1, {batch % 2});
      line.run();
    }
    const auto sample = batches.at({1}).samples[x.sample];
    CHECK(line.failures()
          == diverged("part " + std::to_string(x.which),
                      x.cause + ", sample " + std::to_string(sample)));
    for (const auto& each : line.pushes)
      if (x.which < 2 || each.tables != line_tables(2)) // Its own gradients are finite.
        CHECK(each.pieces.empty());
  }
}

TEST_CASE("a sum that a push function makes not finite is named") {
  whole_line line{2, 2, micro_order::one_f_one_b};
  line.change = [](const batch&, mutable_tensors sums) { sums[1][0] = HUGE_VALF; };
  line.restart(1);
  for (std::uint64_t batch = 0; batch < 20; ++batch) {
    REQUIRE(line.failures().empty());
    line.compute(batch + 1, {batch});
    line.run();
  }
  CHECK(line.failures() == diverged("part 1", "the sum of gradients of 'w1' is not finite"));
}

TEST_CASE("a loss that is not finite costs a line no more than it costs a worker") {
  const backward_script lost = [](mutable_tensors, std::span<float>) {
    return std::numeric_limits<double>::quiet_NaN();
  };
  whole_line line{3, 2, micro_order::one_f_one_b, scripted(2, {}, lost)};
  for (std::uint64_t batch = 0; batch < 25; ++batch) {
    line.compute(batch + 1, {batch % 4});
    line.run();
  }
  CHECK(line.failures().empty());
  REQUIRE(line.members[0]->outcomes.size() == 25);
  CHECK(line.members[0]->outcomes.back().finite);
  CHECK(std::isnan(line.members[0]->outcomes.back().loss)); // The worker leaves it out.
  CHECK(line.pushes.back().pieces.size() == 2);
}

} // namespace line_part_test
