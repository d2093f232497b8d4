#include "actors/roles/worker/router_actor.hpp"
#include "tests/actors/actor_fixture.hpp"
#include "tests/actors/router_fixture.hpp"

#include "doctest/doctest.h"

namespace router_actor_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

struct fixture : actor_fixture {
  fixture() : first(*this), second(*this) {
    auto connect = [this](const member_address& to) -> kv {
      connected.push_back(to);
      return to.member.index == 0 ? first.handle() : second.handle();
    };
    router = owned(spawn_router(system, job, connect));
    tell(routed_view(job));
  }

  void tell(view valid, std::vector<member_address> listeners = {}) {
    send(router, view_atom_v, std::move(valid), std::move(listeners));
  }

  static fake_kv::pull_answer answer(const pull_request& asked) { return answer_to(asked, 3); }

  job_spec job = routed_job();
  fake_kv first;
  fake_kv second;
  std::vector<member_address> connected;
  router_handle router;
};

std::optional<fake_kv::push_answer> receive(const push_request&) { return push_reply{1, false}; }
std::optional<fake_kv::push_answer> lose(const push_request&) {
  return failure{errc::peer_lost, ""};
}

} // namespace

TEST_CASE("a_router_actor_splits_requests_and_joins_the_replies") {
  fixture f;
  const auto pushing = f.push(f.router, whole_push(f.job));
  const auto pulling = f.pull(f.router, whole_pull(f.job));
  for (auto* server : {&f.first, &f.second}) {
    server->on_push(receive);
    server->on_pull(fixture::answer);
  }
  f.first.release();
  CHECK(pushing->pending());
  f.second.release();
  CHECK(pushing->reply == push_reply{1, false});
  REQUIRE(pulling->reply);
  CHECK(pulling->reply->pieces.size() == 4);
  CHECK(f.connected.size() == 2);
}

TEST_CASE("a_router_actor_sends_again_after_its_pause") {
  fixture f;
  f.second.on_push(receive);
  f.first.on_push(lose);
  const auto pushing = f.push(f.router, whole_push(f.job));
  CHECK(f.first.pushes().size() == 1);
  f.first.on_push(receive);
  f.advance(10ms);
  CHECK(f.first.pushes().size() == 1);
  f.advance(10ms);
  CHECK(f.first.pushes().size() == 2);
  CHECK(pushing->reply);
}

TEST_CASE("a_router_actor_sends_again_when_no_answer_comes_in_time") {
  fixture f;
  f.second.on_push(receive);
  const auto pushing = f.push(f.router, whole_push(f.job));
  f.advance(4900ms, 100ms);
  CHECK(f.first.pushes().size() == 1);
  f.advance(700ms, 100ms);
  REQUIRE(f.first.pushes().size() == 2);
  f.first.on_push(receive);
  f.first.release(); // The late first copy is answered too.
  CHECK(pushing->reply);
}

TEST_CASE("a_router_actor_connects_anew_to_a_new_incarnation") {
  fixture f;
  const auto pushing = f.push(f.router, whole_push(f.job));
  auto now_valid = routed_view(f.job, 2);
  now_valid.chains[0].head.incarnation = {500};
  f.tell(now_valid);
  REQUIRE(f.connected.size() == 3);
  CHECK(f.connected[2].member.incarnation.value == 500);
  CHECK(f.first.pushes().size() == 2);
  CHECK(f.second.pushes().size() == 1);
  CHECK(pushing->pending());
}

TEST_CASE("a_router_actor_passes_errors_on") {
  fixture f;
  f.first.on_push([](const push_request&) { return failure{errc::fenced, "too old"}; });
  const auto pushing = f.push(f.router, whole_push(f.job));
  CHECK(pushing->error == failure{errc::fenced, "too old"});
  pull_request outside;
  outside.ranges = {{{9}, 0, 1}};
  CHECK(f.pull(f.router, outside)->error->code == errc::shape_mismatch);
}

TEST_CASE("a_router_actor_reads_at_another_replica_while_the_head_is_silent") {
  fixture f;
  f.second.on_pull(fixture::answer);
  auto replicated = routed_view(f.job, 2);
  replicated.chains[0].others = {routed_server(1)};
  f.tell(replicated, {{routed_server(1), "second"}});
  const auto pulling = f.pull(f.router, whole_pull(f.job));
  f.advance(150ms, 10ms);
  CHECK(pulling->pending());
  f.advance(60ms, 10ms);
  CHECK(pulling->reply);
  CHECK(f.connected.back().address == "second");
}

} // namespace router_actor_test
