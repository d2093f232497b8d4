#include "actors/roles/server/expander_actor.hpp"

#include "tests/actors/actor_fixture.hpp"
#include "tests/actors/answering_kv.hpp"
#include "tests/actors/router_fixture.hpp"

#include "doctest/doctest.h"

#include <map>

namespace expander_test {

using namespace troupe;
using namespace troupe::test;

namespace {

/// A server that records requests, an expander before it, and an actor that takes the answers.
struct fixture : actor_fixture {
  fixture() {
    server = owned(spawn_answering(
      system,
      [this](const request& what) -> std::optional<std::variant<reply, failure>> {
        seen.push_back(what);
        reply made;
        if (what.push)
          made.pushed = push_reply{seen.size(), false};
        if (what.pull)
          made.pulled = answer_to(*what.pull, seen.size());
        return made;
      },
      [this](std::size_t size) { lists.push_back(size); }));
    expander = owned(spawn_expander(system, job, server));
    sink = owned(system.spawn([this](answer_sink::pointer) -> answer_sink::behavior_type {
      return {[this](const answer_list& what) {
        for (const auto& each : what.items)
          std::visit([&](const auto& x) { answers.insert_or_assign(x.number, each); }, each);
      }};
    }));
  }

  push_request packed_push(compression how = {encoding::int8, 0}) {
    auto push = whole_push(job);
    codec{job, {{how, how}, encoding::f32}}.pack(push);
    return push;
  }
  const reply& reply_to(std::uint64_t number) {
    return std::get<reply_message>(answers.at(number)).what;
  }

  job_spec job = routed_job();
  kv_service server, expander;
  answer_sink sink;
  std::vector<request> seen;
  std::vector<std::size_t> lists;
  std::map<std::uint64_t, answer_message> answers;
};

} // namespace

TEST_CASE("an_expander_unpacks_pushes_before_the_server_sees_them") {
  fixture f;
  request_list list{request_message{7, {f.packed_push(), {}}}};
  list.items.push_back({8, {f.packed_push({encoding::topk, 0.5}), whole_pull(f.job)}});
  f.send(f.expander, std::move(list), f.sink);
  REQUIRE(f.seen.size() == 2);
  CHECK(f.lists == std::vector<std::size_t>{2}); // It is still one message.
  for (const auto& each : f.seen) {
    CHECK(each.push->packed.empty());
    CHECK(each.push->pieces.size() == 4);
  }
  CHECK(f.reply_to(7).pushed);
  CHECK(f.reply_to(8).pulled->packed.empty());
}

TEST_CASE("an_expander_packs_values_as_they_are_wanted") {
  fixture f;
  auto packed = whole_pull(f.job);
  packed.packed_as = encoding::fp16;
  request_list list{request_message{7, {f.packed_push(), {}}}};
  list.items.push_back({8, {{}, packed}});
  list.items.push_back({9, {{}, whole_pull(f.job)}});
  f.send(f.expander, std::move(list), f.sink);
  CHECK(f.reply_to(7).pushed->version == 1); // The answers are in order.
  CHECK(f.reply_to(8).pulled->version == 2);
  CHECK(f.reply_to(8).pulled->pieces.empty());
  CHECK(f.reply_to(8).pulled->packed.size() == 2);
  CHECK(f.reply_to(9).pulled->packed.empty());
}

TEST_CASE("an_expander_answers_alone_what_cannot_be_unpacked") {
  fixture f;
  auto bad = f.packed_push();
  bad.packed[1].where.count = 5;
  for (const bool packs : {false, true}) {
    f.answers.clear();
    auto pull = whole_pull(f.job);
    pull.packed_as = packs ? encoding::int8 : encoding::f32;
    request_list list{request_message{7, {bad, pull}}};
    list.items.push_back({8, {f.packed_push(), pull}});
    f.send(f.expander, std::move(list), f.sink);
    CHECK(std::get<failure_message>(f.answers.at(7)).what.code == errc::malformed);
    CHECK(f.reply_to(8).pushed);
  }
  CHECK(f.seen.size() == 2);
}

TEST_CASE("an_expander_serves_who_asks_alone") {
  fixture f;
  auto pull = whole_pull(f.job);
  pull.packed_as = encoding::bf16;
  const auto pulling = f.pull(f.expander, pull);
  REQUIRE(pulling->reply);
  CHECK(pulling->reply->packed.size() == 2);
  CHECK(f.push(f.expander, f.packed_push())->reply);
  auto bad = f.packed_push();
  bad.packed[0].where.table = {7};
  CHECK(f.push(f.expander, bad)->error->code == errc::malformed);
}

TEST_CASE("an_expander_ends_with_its_server") {
  fixture f;
  caf::scoped_actor self{f.system};
  self->monitor(f.expander);
  caf::anon_send_exit(f.server, caf::exit_reason::user_shutdown);
  f.sched.run();
  bool ended = false;
  self->receive([&](const caf::down_msg&) { ended = true; },
                caf::after(std::chrono::seconds{0}) >> [] {});
  CHECK(ended);
}

} // namespace expander_test
