#include "actors/open_requests.hpp"
#include "serialization/payload.hpp"

#include "tests/actors/actor_fixture.hpp"

#include "caf/event_based_actor.hpp"

#include "doctest/doctest.h"

#include <string>
#include <utility>
#include <vector>

namespace troupe::test::open_requests_test {

namespace {

using namespace std::chrono_literals;

/// An actor that sends requests. Its partner answers numbers at once, and all else when the test
/// says so.
struct asking_fixture {
  explicit asking_fixture(late_replies late) : requests(1s, late) {
    partner = f.owned(f.system.spawn([this](caf::event_based_actor* self) -> caf::behavior {
      return {[](int x) { return x; },
              [this, self](tick_atom) {
                auto promise = self->make_response_promise<int>();
                held.push_back(promise);
                return promise;
              },
              [this, self](const request&) {
                auto promise = self->make_response_promise<int>();
                held.push_back(promise);
                return promise;
              },
              [this](step_atom) {
                for (auto& promise : std::exchange(held, {}))
                  if (failing)
                    promise.deliver(make_error(caf::sec::runtime_error));
                  else
                    promise.deliver(1);
              }};
    }));
    responder = f.owned(f.system.spawn([this](caf::event_based_actor* self) -> caf::behavior {
      return {[this, self](int x) { ask(self, x); },
              [this, self](tick_atom what) { ask(self, what); },
              [this, self](const request& what) { ask(self, what); },
              [this, self](step_atom) { requests.expire(now_of(*self)); }};
    }));
  }
  template <class... Ts>
  void ask(caf::event_based_actor* self, const Ts&... what) {
    requests.send<int>(
      self, partner, [this](int& x) { log.push_back("reply " + std::to_string(x)); },
      [this](const caf::error& why) { log.push_back(from_caf(why).text); }, what...);
  }

  std::vector<std::string> log;
  open_requests requests;
  actor_fixture f;
  std::vector<caf::typed_response_promise<int>> held;
  bool failing = false; ///< The partner answers held requests with an error.
  caf::actor partner, responder;
};

} // namespace

TEST_CASE("an open request ends with its reply and has no deadline any more") {
  asking_fixture t{late_replies::ignored};
  t.f.send(t.responder, 7);
  CHECK(t.log == std::vector<std::string>{"reply 7"});
  CHECK(t.requests.empty());
  t.f.advance(2s);
  t.f.send(t.responder, step_atom_v);
  CHECK(t.log.size() == 1);
}

TEST_CASE("an open request ends at its deadline, and a late reply is ignored") {
  asking_fixture t{late_replies::ignored};
  t.f.send(t.responder, tick_atom_v);
  t.f.advance(500ms);
  t.f.send(t.responder, tick_atom_v);
  t.f.advance(490ms);
  t.f.send(t.responder, step_atom_v);
  CHECK(t.log.empty());
  t.f.advance(10ms);
  t.f.send(t.responder, step_atom_v);
  CHECK(t.log == std::vector<std::string>{"no answer in time"});
  t.f.send(t.partner, step_atom_v);
  CHECK(t.log == std::vector<std::string>{"no answer in time", "reply 1"});
  CHECK(t.requests.empty());
}

TEST_CASE("a late reply is delivered where that is wanted, a late error is not") {
  asking_fixture t{late_replies::delivered};
  for (const bool failing : {true, false}) {
    t.failing = failing;
    t.f.send(t.responder, tick_atom_v);
    t.f.advance(1s);
    t.f.send(t.responder, step_atom_v);
    t.f.send(t.partner, step_atom_v);
  }
  CHECK(t.log == std::vector<std::string>{"no answer in time", "no answer in time", "reply 1"});
  CHECK(t.requests.empty());
}

TEST_CASE("an open request ends at once where its receiver is gone") {
  asking_fixture t{late_replies::ignored};
  caf::anon_send_exit(t.partner, caf::exit_reason::kill);
  t.f.sched.run();
  t.f.send(t.responder, 1);
  CHECK(t.log == std::vector<std::string>{"the receiver is gone"});
  CHECK(t.requests.empty());
}

TEST_CASE("a deadline leaves time for the payload, and for those that are open before it") {
  asking_fixture t{late_replies::ignored};
  const std::uint64_t count = payload_bytes_per_second_min * 10 / sizeof(float);
  const request ten_seconds{{}, pull_request{{}, false, {{{0}, 0, count}}}};
  const auto expired = [&](std::chrono::milliseconds after) {
    t.f.advance(after, 100ms);
    t.f.send(t.responder, step_atom_v);
    return t.log.size();
  };
  t.f.send(t.responder, ten_seconds);
  t.f.send(t.responder, ten_seconds);
  CHECK(expired(10'900ms) == 0);
  CHECK(expired(100ms) == 1); // The first request had 1 s and its own 10 s.
  CHECK(expired(9'900ms) == 1);
  CHECK(expired(100ms) == 2); // The second request had 10 s more.
  t.f.send(t.responder, ten_seconds);
  t.f.send(t.partner, step_atom_v); // An answered request counts no more.
  t.f.send(t.responder, tick_atom_v);
  t.log.clear();
  CHECK(expired(1000ms) == 1);
}

} // namespace troupe::test::open_requests_test
