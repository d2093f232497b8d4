// Pulls at replicas that do not lead.
#include "actors/protocol/server/replica.hpp"

#include "tests/actors/replica_trio.hpp"

#include "doctest/doctest.h"

namespace troupe::replica_reads_test {

namespace {

using namespace test;
using namespace std::chrono_literals;

step_header step(std::uint64_t batch, std::uint64_t clock = 0, std::uint32_t worker = 0) {
  return {{worker}, first_start(worker), {1}, {batch}, clock};
}

/// Returns a pull from a worker that has seen `version` of generation 1.
pull_request anywhere(const step_header& of, std::uint64_t version = 0) {
  return {.step = of, .ranges = {}, .seen = {{1}, version}, .anywhere = true};
}

pull_request latest() { return {.step = {}, .latest = true, .ranges = {}, .anywhere = true}; }

const std::string not_leading = " not_ready: this server does not lead the chain";

TEST_CASE("a member that does not lead answers what may be answered anywhere") {
  trio t;
  t.renew();
  t.push(t.head, 1, 0, 5);
  t.deliver();
  t.tail.read(1, anywhere(step(6), 1));
  auto head_only = anywhere(step(6), 1);
  head_only.anywhere = false;
  t.tail.read(2, head_only);
  t.third.read(3, anywhere(step(6)));
  CHECK(t.tail.told == lines{"answer 1 version 1", "refuse 2" + not_leading});
  CHECK(t.third.told.size() == 1); // The third server is no member.
  CHECK(t.tail.decide.state()->counters().pulls == 1);
}

TEST_CASE("who is behind what the asker knows waits until it is not, and not for ever") {
  trio t;
  t.renew();
  t.push(t.head, 1, 0, 5);
  t.tail.read(1, anywhere(step(6), 1));
  t.tail.read(2, anywhere(step(6), 2));
  CHECK(t.tail.told.empty());
  t.deliver();
  CHECK(t.tail.told == lines{"answer 1 version 1"});
  t.pass(500ms);
  CHECK(t.tail.told.back() == "refuse 2 not_yet: waiting for version 2, this is 1");
}

TEST_CASE("the head waits as well for what another replica has told of") {
  trio t;
  t.renew();
  t.push(t.head, 1, 0, 5);
  const auto entry = t.head.sent.front();
  t.head.sent.clear();
  t.tail.receive(entry);
  t.tail.read(1, anywhere(step(6, 0, 1)));
  CHECK(t.tail.told == lines{"answer 1 version 1"});
  t.head.read(2, anywhere(step(6, 0, 1), 1));
  CHECK(t.head.told.empty());
  t.deliver();
  CHECK(t.head.told == lines{"ack 1 version 1", "answer 2 version 1"});
}

TEST_CASE(
  "versions of a history that is over are not waited for, and a later one is not answered") {
  trio t;
  t.renew();
  auto before = anywhere(step(6), 100), after = before;
  before.seen.generation = {0};
  after.seen.generation = {2};
  t.tail.read(1, before);
  t.tail.read(2, after);
  CHECK(t.tail.told
        == lines{"answer 1 version 0",
                 "refuse 2 not_ready: the asker has seen a later history of the chain"});
}

TEST_CASE("of those that do not lead only the tail answers what is to be the latest") {
  trio t;
  t.become(config_of(1, {server(0), server(1)}, server(2)));
  t.become(config_of(2, {server(0), server(1)}));
  t.renew();
  t.tail.read(1, latest());
  CHECK(t.tail.told == lines{"answer 1 version 0"});
  replica_node middle{t.job, server(3), true};
  middle.reconcile({config_of(1, {server(0), server(3), server(1)}), 0, std::nullopt});
  middle.decide.renew(middle.now);
  middle.read(2, latest());
  CHECK(middle.told == lines{"refuse 2" + not_leading});
}

TEST_CASE("reads at a member end with its lease, with a seal, and when it is a member no more") {
  trio t;
  t.renew();
  t.tail.read(1, anywhere(step(6), 1));
  t.pass(800ms);
  t.tail.read(2, anywhere(step(6)));
  CHECK(t.tail.told
        == lines{"refuse 1 not_yet: waiting for version 1, this is 0",
                 "refuse 2 not_ready: the coordinator was not heard for too long"});
  t.renew();
  t.tail.read(3, anywhere(step(6), 1));
  t.push(t.head, 1, 0, 5);
  t.tail.receive(t.head.sent.front()); // The entry is final and applied.
  CHECK(t.tail.told.back() == "answer 3 version 1");
  t.tail.reconcile({config_of(1, {server(0), server(1)}), 0, config_of(2, {server(0)})});
  t.tail.read(4, anywhere(step(6)));
  CHECK(t.tail.told.back() == "refuse 4 not_ready: the coordinator was not heard for too long");
}

TEST_CASE("a pull that waits is refused where a copy takes the place of what it waits for") {
  trio t;
  t.renew();
  t.tail.read(1, anywhere(step(6), 5));
  t.become(config_of(2, {server(0)}, server(1)));
  t.deliver();
  CHECK(t.tail.told == lines{"refuse 1 not_ready: this replica does not lead"});
}

TEST_CASE("bsp: a member waits for the clock that the pull names") {
  trio t{{bsp()}};
  t.renew();
  t.tail.read(1, anywhere(step(2, 1)));
  t.push(t.head, 2, 0, 0);
  t.push(t.head, 3, 1, 1);
  CHECK(t.tail.told.empty());
  t.deliver();
  CHECK(t.tail.told == lines{"answer 1 version 1"});
}

TEST_CASE("ssp: only the replica that leads answers, as it promises clocks to who joins") {
  trio t{{ssp(1)}};
  t.renew();
  t.tail.read(1, anywhere(step(6)));
  t.tail.read(2, latest());
  CHECK(t.tail.told
        == lines{"refuse 1 not_ready: only the replica that leads answers pulls of ssp tables",
                 "answer 2 version 0"});
}

} // namespace

} // namespace troupe::replica_reads_test
