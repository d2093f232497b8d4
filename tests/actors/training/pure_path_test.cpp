#include "actors/training/pure_path.hpp"

#include "doctest/doctest.h"

#include <memory>
#include <stdexcept>
#include <string>

namespace pure_path_test {

using namespace troupe;

namespace {

/// Appends its digit to the batch number of pushes, and to the version of values.
struct digit final : pass_through {
  explicit digit(std::uint64_t made) : mine(made) {}
  void outgoing(request& what, stage_effects& effects) override {
    effects.count("seen");
    what.push->base_version = what.push->base_version * 10 + mine;
  }
  void incoming(reply& what, stage_effects& effects) override {
    effects.log("back");
    what.pulled->version = what.pulled->version * 10 + mine;
  }
  std::uint64_t mine;
};

struct keeps final : pass_through {
  void ask(request_token, request, time_point, stage_effects&) override {}
};
struct doubles final : pass_through {
  void outgoing(request& what, stage_effects& effects) override { effects.forward(what); }
};
struct refuses final : pass_through {
  void answered(forward_id, reply, time_point, stage_effects& effects) override {
    effects.refuse({1}, {errc::timed_out, "no"});
  }
};
struct throws final : pass_through {
  void outgoing(request&, stage_effects&) override { throw std::runtime_error{"no such table"}; }
};

template <class Stage, class... Ts>
pure_stage stage_of(const std::string& name, Ts... what) {
  return {name, [=] { return std::make_unique<Stage>(what...); }};
}

request some_push() {
  request what;
  what.push.emplace();
  return what;
}

/// Returns the error of a push through this stage; empty: there is none.
template <class Stage>
std::string failure_of() {
  auto path = pure_path::of({stage_of<Stage>("noise")});
  REQUIRE(path);
  if (const auto sent = path->forward({1}, some_push()); !sent)
    return sent.error().text;
  const auto got = path->answer({1}, {push_reply{}, {}});
  return got ? "" : got.error().text;
}

} // namespace

TEST_CASE("requests pass the stages in their order, and answers in the other one") {
  auto path = pure_path::of({stage_of<digit>("a", 1u), stage_of<digit>("b", 2u)});
  REQUIRE(path);
  for (const std::uint64_t token : {1, 2, 3}) { // All of them are open at a time.
    const auto sent = path->forward({token}, some_push());
    REQUIRE(sent);
    CHECK(sent->push->base_version == 12);
  }
  for (const std::uint64_t token : {2, 1, 3}) {
    reply what;
    what.pulled.emplace();
    what.pulled->version = token;
    const auto got = path->answer({token}, std::move(what));
    REQUIRE(got);
    CHECK(got->pulled->version == token * 100 + 21);
  }
}

TEST_CASE("a replay has the norm of the values that a stage has made") {
  struct halves final : pass_through {
    void outgoing(request& what, stage_effects&) override {
      auto& values = what.push->pieces[0].values;
      const auto made = std::make_shared<float>(*values / 2);
      values = {made, made.get()};
    }
  };
  for (const bool changes : {false, true}) {
    auto path = pure_path::of({changes ? stage_of<halves>("a") : stage_of<pass_through>("a")});
    REQUIRE(path);
    auto asked = some_push();
    const auto value = std::make_shared<float>(6.0f);
    asked.push->pieces.push_back({{{0}, 0, 1}, {value, value.get()}});
    asked.push->gradient_norm = 6;
    CHECK(path->forward({1}, std::move(asked))->push->gradient_norm == (changes ? 3.0f : 6.0f));
  }
}

TEST_CASE("a stage that is not pure is named") {
  CHECK(failure_of<pass_through>() == "");
  CHECK(failure_of<keeps>()
        == "stage 'noise' is declared pure, but does not pass on a request at once");
  CHECK(failure_of<doubles>()
        == "stage 'noise' is declared pure, but does more than to pass on a request");
  CHECK(failure_of<refuses>()
        == "stage 'noise' is declared pure, but does more than to pass on a request");
  CHECK(failure_of<throws>() == "stage 'noise' failed: no such table");
}

TEST_CASE("the error of a maker is that of the path") {
  const auto path = pure_path::of(
    {{"noise", []() -> std::unique_ptr<stage_decider> { throw std::runtime_error{"no data"}; }}});
  CHECK(path.error() == failure{errc::job_failed, "no data"});
}

} // namespace pure_path_test
