#include "actors/protocol/worker/raw_relay.hpp"

#include "doctest/doctest.h"

#include <string>
#include <vector>

namespace raw_relay_test {

using namespace troupe;
using lines = std::vector<std::string>;

namespace {

struct noting_actor final : stage_actor_port {
  void ask(request_token from, request) override {
    got.push_back("ask " + std::to_string(from.value));
  }
  void answer(exit_token to, reply) override {
    got.push_back("answer " + std::to_string(to.value));
  }
  void refuse(exit_token to, const failure& why) override {
    got.push_back("refuse " + std::to_string(to.value) + " " + why.text);
  }

  lines got;
};

struct fixture {
  /// Returns the effects of a tick.
  lines tick() {
    relay.tick({}, effects);
    lines all;
    for (const auto& each : std::exchange(effects.list, {}))
      if (const auto* const sent = std::get_if<forward_effect>(&each))
        all.push_back("forward " + std::to_string(sent->number.value));
      else if (const auto* const done = std::get_if<answered_effect>(&each))
        all.push_back("answer " + std::to_string(done->request.value));
      else
        all.push_back("refuse " + std::to_string(std::get<failed_effect>(each).request.value));
    return all;
  }

  noting_actor actor;
  raw_relay relay{actor};
  stage_effects effects;
};

} // namespace

TEST_CASE("a request goes to the actor, and the actor's events to the guard in their order") {
  fixture f;
  f.relay.ask({7}, {}, {}, f.effects);
  f.relay.ask({8}, {}, {}, f.effects);
  CHECK(f.actor.got == lines{"ask 7", "ask 8"});
  CHECK(f.tick().empty());
  f.relay.forwarded_by_actor({1}, {});
  f.relay.failed_by_actor({8}, {errc::timed_out, "no"});
  f.relay.forwarded_by_actor({2}, {});
  f.relay.answered_by_actor({7}, {});
  CHECK(f.tick() == lines{"forward 1", "refuse 8", "forward 2", "answer 7"});
  CHECK(f.tick().empty());
}

TEST_CASE("outcomes of forwards go to the requests of the actor") {
  fixture f;
  f.relay.forwarded_by_actor({5}, {});
  f.relay.forwarded_by_actor({6}, {});
  f.tick();
  f.relay.failed({1}, {errc::peer_lost, "gone"}, {}, f.effects);
  f.relay.answered({2}, {}, {}, f.effects);
  CHECK(f.actor.got == lines{"refuse 5 gone", "answer 6"});
}

} // namespace raw_relay_test
