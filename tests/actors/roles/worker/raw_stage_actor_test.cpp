#include "actors/roles/worker/raw_stage_actor.hpp"

#include "tests/actors/actor_fixture.hpp"
#include "tests/actors/router_fixture.hpp"

#include "doctest/doctest.h"

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace raw_stage_actor_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

using raw_behavior = std::function<caf::result<reply>(kv::pointer, const kv&, request&)>;

struct fixture : actor_fixture {
  fixture() : router(*this) {
    router.on_push([](const push_request&) { return push_reply{1, false}; });
  }

  /// Returns a stage whose actor does this with each request.
  kv stage_with(const raw_behavior& what) {
    const raw_stage_maker make = [=, this](caf::actor_system& to, const kv& next,
                                           const stage_notes& taken) {
      const auto made = to.spawn([=](kv::pointer self) -> kv::behavior_type {
        return {[=](request& asked) { return what(self, next, asked); }};
      });
      address = made.address();
      taken.count("made");
      return made;
    };
    return spawn_raw_stage(system, {.name = "noise", .notes = notes, .is_program = true}, make,
                           router.handle());
  }
  kv owned_stage(const raw_behavior& what) { return owned(stage_with(what)); }

  push_request push_with(std::uint64_t batch) const {
    auto made = whole_push(job);
    made.step.batch = {batch};
    return made;
  }

  bool actor_lives() const { return caf::actor_cast<caf::strong_actor_ptr>(address) != nullptr; }

  std::vector<std::string> log;
  std::shared_ptr<program_notes> notes = std::make_shared<program_notes>(
    [this](log_level, const std::string& line) { log.push_back(line); });
  job_spec job = routed_job();
  fake_kv router;
  caf::actor_addr address; ///< Of the program's actor.
};

caf::result<reply> pass(kv::pointer self, const kv& next, request& what) {
  return self->delegate(next, std::move(what));
}

} // namespace

TEST_CASE("requests pass through the actor of a raw stage") {
  fixture f;
  const auto stage = f.owned_stage(pass);
  const auto pushing = f.push(stage, f.push_with(1));
  CHECK(pushing->reply == push_reply{1, false});
  CHECK(f.router.pushes().size() == 1);
  CHECK(f.notes->all() == std::vector<program_note>{{"noise.made", 1}});
}

TEST_CASE("an error of the next kv or of the actor is the error of the request") {
  fixture f;
  bool refuses = false;
  const auto stage =
    f.owned_stage([&](kv::pointer self, const kv& next, request& what) -> caf::result<reply> {
      if (refuses)
        return to_caf({errc::overloaded, "not now"});
      return pass(self, next, what);
    });
  f.router.on_push([](const push_request&) { return failure{errc::rolled_back, "back"}; });
  CHECK(f.push(stage, f.push_with(1))->error == failure{errc::rolled_back, "back"});
  refuses = true;
  CHECK(f.push(stage, f.push_with(2))->error == failure{errc::overloaded, "not now"});
}

TEST_CASE("an actor that breaks the contract is named") {
  fixture f;
  const auto stage =
    f.owned_stage([](kv::pointer self, const kv& next, request& what) -> caf::result<reply> {
      self->request(next, 1min, what).then([](const reply&) {}, [](const caf::error&) {});
      return pass(self, next, what);
    });
  const auto pushing = f.push(stage, f.push_with(1));
  REQUIRE(pushing->error);
  CHECK(pushing->error->text == "stage 'noise' forwarded batch 1 of worker 0 twice");
}

TEST_CASE("after a breach the requests of the actor fail") {
  fixture f;
  int failures = 0;
  const auto stage =
    f.owned_stage([&](kv::pointer self, const kv& next, request& what) -> caf::result<reply> {
      for (int i = 0; i < 2; ++i)
        self->request(next, 1min, what)
          .then([](const reply&) {}, [&](const caf::error&) { ++failures; });
      return self->make_response_promise<reply>();
    });
  f.router.on_push([](const push_request&) { return std::nullopt; }); // The first one stays open.
  CHECK(f.push(stage, f.push_with(1))->error);
  CHECK(failures == 2);
}

TEST_CASE("an actor that ends is named, and later requests fail") {
  fixture f;
  const auto quits = [](kv::pointer self, const kv&, request&) -> caf::result<reply> {
    self->quit();
    return to_caf({errc::timed_out, "ends"});
  };
  const auto throws = [](kv::pointer, const kv&, request&) -> caf::result<reply> {
    throw std::runtime_error{"no such table"};
  };
  const auto check = [&](const raw_behavior& ends, const std::string& text) {
    const auto stage = f.owned_stage(ends);
    f.push(stage, f.push_with(1));
    const auto later = f.push(stage, f.push_with(2));
    REQUIRE(later->error);
    CHECK(later->error->code == errc::contract_broken);
    CHECK(later->error->text == "stage 'noise' ended: its actor " + text);
  };
  check(quits, "quit");
  check(throws, "threw an exception, whose text CAF printed in the output of the process");
}

TEST_CASE("an actor that never answers is refused after 10 s, and its forwards then fail") {
  fixture f;
  std::vector<std::pair<kv, request>> held;
  int failures = 0;
  const auto stage =
    f.owned_stage([&](kv::pointer self, const kv& next, request& what) -> caf::result<reply> {
      held.emplace_back(next, what);
      if (held.size() > 1)
        self->request(next, 1min, held[0].second)
          .then([](const reply&) {}, [&](const caf::error&) { ++failures; });
      return self->make_response_promise<reply>();
    });
  const auto pushing = f.push(stage, f.push_with(1));
  f.advance(11s, 500ms);
  REQUIRE(pushing->error);
  CHECK(pushing->error->code == errc::timed_out);
  f.push(stage, f.push_with(2)); // The actor forwards the first push now.
  f.advance(1s, 500ms);
  CHECK(failures == 1);
  CHECK(f.router.pushes().empty());
}

TEST_CASE("the actor of a raw stage ends with the stage") {
  fixture f;
  std::optional stage{f.stage_with(pass)};
  f.sched.run();
  CHECK(f.actor_lives());
  SUBCASE("whose last handle is dropped") { stage.reset(); }
  SUBCASE("that is told to exit") { caf::anon_send_exit(*stage, caf::exit_reason::user_shutdown); }
  f.sched.run();
  CHECK_FALSE(f.actor_lives());
}

TEST_CASE("a raw stage without an actor, or with one that has no simulated time, is refused") {
  fixture f;
  const auto text_of = [&](const raw_stage_maker& make) -> std::string {
    try {
      spawn_raw_stage(f.system, {.name = "noise"}, make, f.router.handle(), true);
    } catch (const std::exception& thrown) {
      return thrown.what();
    }
    return "";
  };
  CHECK(text_of([](caf::actor_system&, const kv&, const stage_notes&) { return kv{}; })
        == "the maker of stage 'noise' made no actor");
  CHECK(text_of([](caf::actor_system&, const kv&, const stage_notes&) -> kv {
          throw std::runtime_error{"no data"};
        })
        == "stage 'noise': no data");
  const auto detached = [](caf::actor_system& to, const kv&, const stage_notes&) {
    return to.spawn<caf::detached>(
      [](kv::pointer) -> kv::behavior_type { return {[](const request&) { return reply{}; }}; });
  };
  CHECK(text_of(detached).find("detached") != std::string::npos);
}

} // namespace raw_stage_actor_test
