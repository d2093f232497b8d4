#include "actors/protocol/server/replica.hpp"

#include "tests/actors/replica_trio.hpp"

#include "doctest/doctest.h"

namespace troupe::replica_test {

namespace {

using namespace test;
using namespace std::chrono_literals;

} // namespace

TEST_CASE("a server was a member in whatever incarnation, and as a joiner it was none") {
  const chain_config config{
    {3}, {1}, {{role::server, 4, {40}}, {role::server, 5, {50}}}, member_id{role::server, 6, {60}}};
  CHECK(was_member(config, {4}));
  CHECK(was_member(config, {5}));
  CHECK_FALSE(was_member(config, {6}));
  CHECK_FALSE(was_member(config, {7}));
}

TEST_CASE("what was kept is all where its server was a member of what was lost") {
  const chain_config lost{{3}, {5}, {{role::server, 4, {40}}}, {}};
  CHECK(kept_all(lost, {4}, {1, {}, {5}, false}));
  CHECK_FALSE(kept_all(lost, {6}, {1, {}, {5}, true}));
  CHECK_FALSE(kept_all(lost, {4}, {1, {}, {4}, true}));
}

TEST_CASE("what an unfinished beginning kept is all only where it began with all") {
  const chain_config lost{{3}, {5}, {{role::server, 4, {40}}}, {}};
  CHECK(kept_all(lost, {4}, {1, {}, {6}, true}));
  CHECK_FALSE(kept_all(lost, {4}, {1, {}, {6}, false})); // The server's disk had been wiped.
}

TEST_CASE("a push is acknowledged when all replicas have it") {
  trio t;
  t.push(t.head, 1, 0, 5);
  CHECK(t.head.told.empty());
  CHECK(t.head.steps.empty());
  t.deliver();
  CHECK(t.head.told == lines{"ack 1 version 1"});
  CHECK(t.head.steps == lines{"to 0: 5"});
  CHECK(t.tail.steps == t.head.steps);
  CHECK(t.tail.told.empty());
}

TEST_CASE("a state that a final entry was not applied to is not copied for that entry's") {
  const auto job = job_of({asp()});
  replica_node alone{job, server(0), true};
  alone.list({member(0)});
  auto joined = config_of(1, {server(0)});
  joined.joiner = server(1);
  alone.reconcile({joined, 0, std::nullopt});
  CHECK(alone.decide.copy_for(server(1), {1}) == 0);

  replica_effects effects;
  alone.decide.push({1}, gradient_of(job, 0, 5, 0), alone.now, effects);
  REQUIRE(std::holds_alternative<step_effect>(effects.back()));
  CHECK(alone.decide.copy_for(server(1), {1}) == std::nullopt);
  alone.decide.applied(alone.now, effects);
  CHECK(alone.decide.copy_for(server(1), {1}) == 1);
}

TEST_CASE("who does not lead refuses") {
  trio t;
  t.push(t.tail, 1, 0, 5);
  t.tail.pull(2, {});
  const std::string why = " not_ready: this server does not lead the chain";
  CHECK(t.tail.told == lines{"refuse 1" + why, "refuse 2" + why});
  t.become(config_of(2, {server(1)}));
  t.push(t.tail, 3, 0, 5);
  CHECK(t.tail.told.back() == "ack 3 version 1");
}

TEST_CASE("what is sealed answers nobody") {
  trio t;
  t.push(t.head, 1, 0, 5);
  t.head.reconcile({config_of(1, {server(0), server(1)}), 0, config_of(2, {server(0)})});
  CHECK(t.head.told == lines{"refuse 1 not_ready: this replica does not lead"});
  t.deliver();
  t.push(t.head, 2, 0, 5);
  CHECK(t.head.told.back() == "refuse 2 not_ready: this server does not lead the chain");
  // The entry stays in the logs of the remaining members.
  t.become(config_of(2, {server(0)}));
  CHECK(t.head.steps == lines{"to 0: 5"});
  t.push(t.head, 3, 0, 5);
  CHECK(t.head.told.back() == "ack 3 version 1 duplicate");
}

TEST_CASE("a removed head drops what is not final, and comes back with its past state") {
  trio t;
  t.push(t.head, 1, 0, 5);
  t.deliver();
  t.push(t.head, 2, 0, 6);
  t.head.sent.clear(); // The append messages are lost.
  t.become(config_of(2, {server(1)}));
  CHECK(t.head.told.back() == "refuse 2 not_ready: this replica does not lead");
  CHECK(t.head.decide.state()->pending() == 0);
  CHECK(t.head.steps == lines{"to 0: 5"});
  t.push(t.tail, 3, 1, 7);
  t.become(config_of(3, {server(1)}, server(0)));
  t.deliver();
  CHECK(t.tail.decide.status().joiner_synced);
  CHECK(t.head.steps == lines{"to 0: 5", "to 0: 7"});
}

TEST_CASE("reads end with the lease, also where the chain is one server by now") {
  trio t;
  t.renew();
  t.head.pull(1, {});
  t.pass(800ms);
  t.head.pull(2, {});
  t.renew();
  t.head.pull(3, {});
  CHECK(t.head.told
        == lines{"answer 1 version 0",
                 "refuse 2 not_ready: the coordinator was not heard for too long",
                 "answer 3 version 0"});
  t.become(config_of(2, {server(0)}));
  t.pass(100s);
  t.head.pull(4, {});
  CHECK(t.head.told.back() == "refuse 4 not_ready: the coordinator was not heard for too long");
}

TEST_CASE("a pull that waits is not answered after the lease") {
  trio t{{bsp()}};
  t.renew();
  const auto step = [&](std::uint32_t worker) {
    return step_header{{worker}, first_start(worker), {1}, {2}, 1};
  };
  t.head.pull(1, step(0), false);
  t.push(t.head, 2, 0, 0);
  t.push(t.head, 3, 1, 1);
  for (auto* x : t.all())
    x->now += 800ms;
  t.deliver();
  CHECK(t.head.told
        == lines{"ack 2 version 1", "ack 3 version 1",
                 "refuse 1 not_ready: the server's lease has ended"});
}

/// Returns a gradient of 16 bytes.
std::shared_ptr<const push_request> large_gradient_of(const job_spec& job, std::uint64_t batch) {
  auto large = std::make_shared<push_request>(*gradient_of(job, 0, batch, batch));
  large->pieces = {
    {{{0}, 0, 4}, std::shared_ptr<const float>{new float[4]{}, std::default_delete<float[]>{}}}};
  return large;
}

TEST_CASE("pushes are refused while the log is full") {
  replica_options options;
  options.chain_log_bytes_max = 10;
  trio t{{asp()}, options};
  t.head.push(1, large_gradient_of(t.job, 1));
  t.push(t.head, 2, 0, 2, 1);
  CHECK(t.head.told == lines{"refuse 2 not_ready: too much waits for the other replicas"});
  t.deliver();
  t.push(t.head, 3, 0, 2, 1);
  t.deliver();
  CHECK(t.head.told.back() == "ack 3 version 2");
}

TEST_CASE("what a tail keeps for a joiner that is slow fills the log of its head") {
  replica_options options;
  options.chain_log_bytes_max = 40;
  trio t{{asp()}, options};
  t.become(config_of(2, {server(0), server(1)}, server(2)));
  t.tail.receive(std::exchange(t.third.sent, {}).front());
  const auto copy = std::exchange(t.tail.sent, {}); // The copy is delayed.
  for (std::uint64_t i = 1; i <= 10; ++i) {
    t.head.push(i, large_gradient_of(t.job, i));
    t.deliver();
  }
  CHECK(t.head.told
        == lines{"ack 1 version 1", "ack 2 version 2", "ack 3 version 3",
                 "refuse 7 not_ready: too much waits for the other replicas",
                 "refuse 8 not_ready: too much waits for the other replicas",
                 "refuse 9 not_ready: too much waits for the other replicas",
                 "refuse 10 not_ready: too much waits for the other replicas"});
  t.third.receive(copy.back());
  t.deliver();
  CHECK(t.head.told.back() == "ack 6 version 6");
  CHECK(t.third.steps.size() == 6);
  CHECK(t.tail.decide.status().joiner_synced);
  t.push(t.head, 11, 0, 11, 11);
  t.deliver();
  CHECK(t.head.told.back() == "ack 11 version 7");
}

TEST_CASE("what is lost is sent again") {
  trio t;
  t.push(t.head, 1, 0, 5);
  t.head.sent.clear();
  t.pass(99ms);
  CHECK(t.head.sent.empty());
  t.pass(1ms);
  t.deliver();
  CHECK(t.head.told == lines{"ack 1 version 1"});
}

TEST_CASE("a slot's payload ends with its request") {
  trio t{{bsp()}};
  auto slot = gradient_of(t.job, 0, 0, 0);
  const std::weak_ptr<const push_request> watch = slot;
  t.head.push(1, std::move(slot));
  CHECK_FALSE(watch.expired());
  SUBCASE("applied") {
    t.push(t.head, 2, 1, 1);
    t.deliver();
    CHECK(t.head.told == lines{"ack 1 version 1", "ack 2 version 1"});
  }
  SUBCASE("refused") { t.become(config_of(2, {server(1), server(0)})); }
  CHECK(watch.expired());
}

TEST_CASE("a joiner of a bsp job is synced when it can answer for the clock before") {
  trio t{{bsp()}};
  t.push(t.head, 1, 0, 0);
  t.push(t.head, 2, 1, 1);
  t.deliver();
  t.become(config_of(2, {server(0), server(1)}, server(2)));
  t.deliver();
  CHECK(t.third.steps == t.head.steps);
  CHECK_FALSE(t.tail.decide.status().joiner_synced);
  t.push(t.head, 3, 0, 2, 1);
  t.push(t.head, 4, 1, 3, 1);
  t.deliver();
  CHECK(t.tail.decide.status().joiner_synced);
  CHECK(t.third.steps == t.head.steps);
}

TEST_CASE("an entry of an asp table does not make a joiner of a mixed job a synced one") {
  trio t{{asp(), bsp()}};
  const auto push = [&](std::uint64_t token, std::uint32_t worker, std::uint64_t batch) {
    t.push(t.head, token, worker, batch, batch / 2);
    t.deliver();
  };
  push(1, 0, 0);
  push(2, 1, 1);
  t.become(config_of(2, {server(0), server(1)}, server(2)));
  push(3, 0, 2);
  CHECK(t.third.steps == lines{"to 0: 0", "to 0: 1", "to 1: 0 1", "to 0: 2"});
  CHECK_FALSE(t.tail.decide.status().joiner_synced);
  push(4, 1, 3);
  CHECK(t.tail.decide.status().joiner_synced);
}

TEST_CASE("a joiner that leads promises by the clocks of whom it is a copy") {
  trio t{{ssp(1)}};
  t.renew();
  for (std::uint64_t clock = 0; clock < 5; ++clock)
    for (std::uint32_t worker : {0U, 1U}) {
      t.push(t.head, 10 * clock + worker, worker, 2 * clock + worker, clock);
      t.deliver();
    }
  t.become(config_of(2, {server(0), server(1)}, server(2)));
  t.deliver();
  t.become(config_of(3, {server(0), server(1), server(2)}));
  t.become(config_of(4, {server(2)}));
  CHECK(t.third.decide.leads());
  t.third.list({member(0, 5), member(1, 5), {{2}, first_start(2), 0, false}});
  const auto clocks = t.third.decide.state()->clocks();
  REQUIRE(clocks.size() == 3);
  CHECK(clocks[2].known);
  CHECK(clocks[2].clock == 4); // A worker may have read at clock 5.
}

TEST_CASE("a cut is forgotten by whoever leads no more") {
  trio t{{bsp()}};
  t.head.event([&](auto& effects) { t.head.decide.request_cut(7, 1, t.head.now, effects); });
  t.become(config_of(2, {server(1), server(0)}));
  t.push(t.tail, 1, 0, 0);
  t.push(t.tail, 2, 1, 1);
  t.deliver();
  CHECK(t.head.steps.size() == 1);
  CHECK(t.head.told.empty());
}

} // namespace troupe::replica_test
