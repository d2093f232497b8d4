#include "actors/protocol/server/shard.hpp"

#include "tests/actors/shard_fixture.hpp"

#include "doctest/doctest.h"

namespace troupe::shard_test {

namespace {

using namespace test;

batch_set set_of(const std::vector<std::uint64_t>& batches) {
  batch_set set;
  for (const std::uint64_t batch : batches)
    set.insert({batch});
  return set;
}

/// Returns a shard whose workers 0 and 1 were admitted at clock 0, so that both have a clock.
shard_fixture admitted(const job_spec& job) {
  return shard_fixture{job, {}, {joiner(0), joiner(1)}};
}

// -- identity --

TEST_CASE("a batch is applied once and marked on every partition and table") {
  shard_fixture f{job_of({asp(), asp()})};
  CHECK(f.push(1, 0, 3, 0) == lines{"apply 1 to 0 1", "ack 1 version 1"});
  CHECK(f.push(2, 1, 3, 0) == lines{"ack 2 version 1 duplicate"});
  CHECK(f.decide.batches_applied() == set_of({3}));
  for (const shard_partition& p : f.decide.partitions())
    CHECK(p.applied == std::vector{set_of({3}), set_of({3})});
  CHECK(f.decide.counters().applied == 1);
  CHECK(f.decide.counters().duplicates == 1);
}

TEST_CASE("the applied batches are those of all partitions and tables together") {
  const job_spec job = job_of({asp(), asp()});
  auto partitions = fresh(job, {0, 1});
  partitions[0].applied = {set_of({0, 1, 2}), set_of({0, 2})};
  partitions[1].applied = {set_of({0, 2, 3}), set_of({0, 1, 2, 3})};
  CHECK(shard_fixture{job, partitions}.decide.batches_applied() == set_of({0, 2}));
}

TEST_CASE("a push leaves alone the partitions that have its batch") {
  const job_spec job = job_of({asp(), asp()});
  auto partitions = fresh(job, {0, 1});
  partitions[1].applied = {set_of({3}), set_of({3})};
  partitions[0].applied = {set_of({3}), set_of({})};
  shard_fixture f{job, partitions};
  CHECK(f.push(1, 0, 3, 0) == lines{"apply 1 to 1 skip 1/1", "ack 1 version 1"});
  CHECK(f.push(2, 0, 3, 0) == lines{"ack 2 version 1 duplicate"});
}

TEST_CASE("a push marks only the tables that it lists") {
  shard_fixture f{job_of({asp(), asp()})};
  CHECK(f.push(1, f.step(0, 3, 0), {{1}}) == lines{"apply 1 to 1", "ack 1 version 1"});
  CHECK(f.decide.batches_applied().size() == 0);
  CHECK(f.push(2, f.step(0, 3, 0), {{1}, {0}}) == lines{"apply 2 to 0 late 1", "ack 2 version 2"});
  CHECK(f.decide.batches_applied() == set_of({3}));
}

TEST_CASE("a gradient that is not finite leaves no trace but a count") {
  shard_fixture f = admitted(job_of({ssp(0)}));
  f.not_finite = true;
  CHECK(f.push(1, 0, 3, 0) == lines{"apply 1 to 0", "refuse 1 non_finite: nan"});
  CHECK(f.decide.batches_applied().size() == 0);
  CHECK(f.decide.version() == 0);
  CHECK(f.decide.clocks()[0].clock == 0);
  CHECK(f.decide.counters().refused == 1);
  CHECK(f.decide.counters().staleness_versions.count() == 0);
  CHECK_FALSE(f.decide.holds({1}));
  f.not_finite = false;
  CHECK(f.push(2, 0, 3, 0) == lines{"apply 2 to 0", "ack 2 version 1"});
}

TEST_CASE("pushes refused by the caller are counted") {
  shard_fixture f{job_of({bsp()})};
  f.decide.count_refused();
  CHECK(f.decide.counters().refused == 1);
}

TEST_CASE("a restored shard goes on from its largest version and knows its applied batches") {
  const job_spec job = job_of({asp()});
  auto partitions = fresh(job, {0, 1});
  partitions[0] = {{0}, 7, {set_of({0, 1})}};
  partitions[1] = {{1}, 9, {set_of({0, 1})}};
  shard_fixture f{job, partitions};
  CHECK(f.decide.version() == 9);
  CHECK(f.push(1, 0, 1, 0) == lines{"ack 1 version 9 duplicate"});
  CHECK(f.push(2, 0, 2, 0, 9) == lines{"apply 2 to 0", "ack 2 version 10"});
  for (const shard_partition& p : f.decide.partitions())
    CHECK(p.version == 10);
}

TEST_CASE("a shard without partitions has every batch") {
  const job_spec job = job_of({bsp(), asp()}, 2, 6);
  shard decide{job, {1}, {}};
  CHECK(decide.batches_applied() == batch_set{batch_id{6}});
  CHECK(decide.bsp_clocks() == 3);
}

// -- refused requests --

TEST_CASE("malformed requests change nothing") {
  shard_fixture f = admitted(job_of({asp(), ssp(1)}));
  const auto refused = [&](const lines& what) {
    return what.size() == 1 && what[0].find(" malformed: ") != std::string::npos;
  };
  CHECK(refused(f.push(1, 0, 16, 5)));
  CHECK(refused(f.push(2, f.step(0, 0, 5), {{0}, {2}})));
  CHECK(refused(f.push(3, f.step(0, 0, 5), {{0}, {1}, {0}})));
  CHECK(refused(f.pull(4, 0, 16, 5)));
  CHECK(refused(f.pull(5, f.step(0, 0, 5), {{2}})));
  CHECK(refused(f.pull(6, f.step(0, 0, 5), {{2}}, true)));
  CHECK(f.decide.version() == 0);
  CHECK(f.decide.batches_applied().size() == 0);
  CHECK(f.decide.clocks() == std::vector{member(0), member(1)});
  CHECK(f.decide.counters() == server_counters{});
}

TEST_CASE("a push names all bsp tables or none") {
  shard_fixture f{job_of({bsp(), bsp(), asp()})};
  CHECK(f.push(1, f.step(0, 0, 0), {{0}, {2}})[0].starts_with("refuse 1 malformed"));
  CHECK(f.push(2, f.step(0, 0, 0), {{2}}) == lines{"apply 2 to 2", "ack 2 version 1"});
}

TEST_CASE("requests of another generation are refused") {
  shard_fixture f{job_of({asp()})};
  step_header step = f.step(0, 0, 0);
  step.generation = {0};
  CHECK(f.push(1, step, {{0}})[0].starts_with("refuse 1 rolled_back"));
  CHECK(f.pull(2, step, {{0}})[0].starts_with("refuse 2 rolled_back"));
  step.generation = {2};
  CHECK(f.push(3, step, {{0}})[0].starts_with("refuse 3 not_ready"));
  CHECK(f.pull(4, step, {{0}})[0].starts_with("refuse 4 not_ready"));
}

TEST_CASE("requests of workers that are not listed are refused") {
  shard_fixture f{job_of({asp()})};
  CHECK(f.push(1, 7, 0, 0)[0].starts_with("refuse 1 not_ready"));
  CHECK(f.pull(2, 7, 0, 0)[0].starts_with("refuse 2 not_ready"));
  step_header step = f.step(0, 0, 0);
  step.incarnation = {5};
  CHECK(f.push(3, step, {{0}})[0].starts_with("refuse 3 not_ready"));
}

TEST_CASE("requests of a replaced worker are fenced") {
  shard_fixture f{job_of({asp()})};
  f.set_workers({member(1), {{0}, {77}, 0, false}});
  CHECK(f.push(1, 0, 0, 0)[0].starts_with("refuse 1 fenced"));
  CHECK(f.pull(2, 0, 0, 0)[0].starts_with("refuse 2 fenced"));
  step_header step = f.step(0, 0, 0);
  step.incarnation = {77};
  CHECK(f.push(3, step, {{0}}).back() == "ack 3 version 1");
}

// -- asp and staleness --

TEST_CASE("asp pulls are answered at once") {
  shard_fixture f{job_of({asp(), {consistency_mode::hogwild, 0}})};
  CHECK(f.pull(1, 0, 0, 100) == lines{"answer 1 version 0"});
  CHECK(f.decide.counters().pulls == 1);
  CHECK(f.decide.counters().waiting_pulls == 0);
  CHECK(f.decide.pull_clock_max() == 0);
}

TEST_CASE("staleness counts the versions since the base and the clocks since the slowest") {
  shard_fixture f = admitted(job_of({asp()}));
  f.push(1, 0, 0, 0);
  f.push(2, 0, 1, 1);
  CHECK(f.push(3, 0, 2, 2, 1) == lines{"apply 3 to 0 late 1", "ack 3 version 3"});
  CHECK(f.push(4, 1, 3, 0, 0) == lines{"apply 4 to 0 late 3", "ack 4 version 4"});
  CHECK(f.push(5, 1, 4, 1, 99) == lines{"apply 5 to 0", "ack 5 version 5"});
  f.push(6, 1, 4, 1, 0);
  const server_counters& counted = f.decide.counters();
  CHECK(counted.staleness_versions.counts() == std::vector<std::uint64_t>{2, 2, 0, 1});
  CHECK(counted.staleness_clocks.counts() == std::vector<std::uint64_t>{3, 1, 1});
}

TEST_CASE("the first push after a restore has no staleness in clocks") {
  shard_fixture f{job_of({asp()})};
  f.push(1, 0, 0, 1000);
  CHECK(f.decide.counters().staleness_clocks.max() == 0);
}

// -- ssp --

TEST_CASE("an ssp pull at clock c waits for all pushes of clocks up to c - s - 1") {
  for (std::uint32_t s = 0; s < 4; ++s) {
    CAPTURE(s);
    shard_fixture f = admitted(job_of({ssp(s)}));
    std::uint64_t token = 0;
    for (std::uint64_t clock = 0; clock <= s; ++clock) {
      CHECK(f.pull(++token, 0, clock, clock).back().starts_with("answer"));
      f.push(++token, 0, clock, clock, clock);
    }
    CHECK(f.pull(100, 0, 8, s + 1).empty());
    CHECK(f.pull(101, 0, 8, s + 2).empty());
    CHECK(f.decide.counters().waiting_pulls == 2);
    CHECK(f.decide.pull_clock_max() == s);
    const std::string version = std::to_string(s + 2);
    CHECK(
      f.push(102, 1, 9, 0, s + 1)
      == lines{"apply 102 to 0", "ack 102 version " + version, "answer 100 version " + version});
    CHECK(f.decide.pull_clock_max() == s + 1);
  }
}

TEST_CASE("a pull tells that its worker has pushed all clocks before") {
  shard_fixture f = admitted(job_of({ssp(0)}));
  CHECK(f.pull(1, 0, 0, 4).empty());
  CHECK(f.pull(2, 1, 1, 4) == lines{"answer 1 version 0", "answer 2 version 0"});
  CHECK(f.decide.clocks() == std::vector{member(0, 4), member(1, 4)});
  CHECK(f.pull(3, 1, 1, 2) == lines{"answer 3 version 0"});
  CHECK(f.decide.clocks() == std::vector{member(0, 4), member(1, 4)});
}

TEST_CASE("a duplicate moves its worker's clock too") {
  shard_fixture f = admitted(job_of({ssp(0)}));
  f.push(1, 0, 0, 0);
  CHECK(f.pull(2, 0, 1, 1).empty());
  CHECK(f.push(3, 1, 0, 0) == lines{"ack 3 version 1 duplicate", "answer 2 version 1"});
}

TEST_CASE("the strictest table of a query decides") {
  shard_fixture f = admitted(job_of({ssp(3), ssp(1), asp()}));
  CHECK(f.pull(1, f.step(0, 0, 2), {{0}, {2}}) == lines{"answer 1 version 0"});
  CHECK(f.pull(2, f.step(0, 0, 2), {{2}, {0}, {1}}).empty());
  CHECK(f.pull(3, f.step(0, 0, 9), {{2}}) == lines{"answer 3 version 0"});
}

TEST_CASE("pulls wait for a worker that was never heard of") {
  shard_fixture f{job_of({ssp(3), asp()})};
  CHECK(f.decide.clocks() == std::vector{joiner(0), joiner(1)});
  CHECK(f.pull(1, 0, 0, 40).empty());
  CHECK(f.pull(2, f.step(0, 0, 40), {{1}}) == lines{"answer 2 version 0"});
  CHECK(f.pull(3, 1, 1, 37) == lines{"answer 1 version 0", "answer 3 version 0"});
  CHECK(f.decide.clocks() == std::vector{member(0, 40), member(1, 37)});
}

TEST_CASE("a worker being admitted may start at the largest pull minus the staleness") {
  shard_fixture f{job_of({ssp(4), ssp(2)}), {}, {joiner(0)}};
  f.pull(1, 0, 0, 7);
  CHECK(f.decide.pull_clock_max() == 7);
  f.set_workers({member(0), joiner(1)});
  CHECK(f.decide.clocks() == std::vector{member(0, 7), member(1, 5)});
  SUBCASE("and is waited for from there on") {
    CHECK(f.pull(2, 0, 0, 8).empty());
    f.set_workers({member(0), joiner(1)});
    CHECK(f.decide.clocks()[1].clock == 5);
    CHECK(f.set_workers({member(0), member(1, 6)}) == lines{"answer 2 version 0"});
    CHECK(f.decide.clocks()[1].clock == 6);
  }
  SUBCASE("and may speak before the desired state lists it as known") {
    CHECK(f.pull(3, 1, 0, 10).empty());
    f.set_workers({member(0), member(1, 6)});
    CHECK(f.decide.clocks()[1] == member(1, 10));
  }
}

TEST_CASE("without ssp tables the promise is clock 0") {
  shard_fixture f{job_of({asp()}), {}, {joiner(0)}};
  f.pull(1, 0, 0, 7);
  f.set_workers({member(0), joiner(1)});
  CHECK(f.decide.clocks()[1] == member(1, 0));
}

TEST_CASE("pulls that wait for a worker go on when it leaves") {
  shard_fixture f = admitted(job_of({ssp(0)}));
  CHECK(f.pull(1, 0, 0, 3).empty());
  CHECK(f.set_workers({member(0)}) == lines{"answer 1 version 0"});
  CHECK(f.decide.clocks() == std::vector{member(0, 3)});
}

TEST_CASE("waiting pulls of a worker that left or was replaced are refused") {
  shard_fixture f = admitted(job_of({ssp(0)}));
  f.set_workers({joiner(0), joiner(1), joiner(2)});
  f.pull(1, 0, 0, 3);
  f.pull(2, 1, 0, 3);
  const lines what = f.set_workers({joiner(2), {{1}, {88}, 0, false}});
  REQUIRE(what.size() == 2);
  CHECK(what[0].starts_with("refuse 1 not_ready"));
  CHECK(what[1].starts_with("refuse 2 fenced"));
}

// -- bsp --

TEST_CASE("a bsp clock is applied when all slots are there, in slot order") {
  shard_fixture f{job_of({bsp()}, 3, 8)};
  CHECK(f.push(10, 0, 2, 0).empty());
  CHECK(f.push(11, 1, 0, 0).empty());
  CHECK(f.decide.batches_applied().size() == 0);
  CHECK(
    f.push(12, 0, 1, 1)
    == lines{"apply 11 12 10 to 0", "ack 11 version 1", "ack 12 version 1", "ack 10 version 1"});
  CHECK(f.decide.batches_applied() == batch_set{batch_id{3}});
  CHECK(f.decide.bsp_clocks() == 1);
  CHECK(f.decide.counters().applied == 3);
  CHECK(f.decide.counters().staleness_versions.counts() == std::vector<std::uint64_t>{3});
  CHECK(f.decide.counters().staleness_clocks.counts() == std::vector<std::uint64_t>{3});
}

TEST_CASE("early slots are kept and applied one clock after the other") {
  shard_fixture f{job_of({bsp()}, 2, 5)};
  f.push(4, 0, 4, 2);
  f.push(2, 0, 2, 1);
  f.push(3, 1, 3, 1);
  f.push(1, 1, 1, 0);
  CHECK(f.push(9, 0, 0, 0)
        == lines{"apply 9 1 to 0", "ack 9 version 1", "ack 1 version 1", "apply 2 3 to 0",
                 "ack 2 version 2", "ack 3 version 2", "apply 4 to 0", "ack 4 version 3"});
  CHECK(f.decide.batches_applied() == batch_set{batch_id{5}});
}

TEST_CASE("slots of clocks more than 64 ahead are refused and change nothing") {
  shard_fixture f{job_of({bsp(), asp()}, 2, 1000)};
  CHECK(f.push(1, 0, 2 * 65, 0)[0].starts_with("refuse 1 not_ready"));
  CHECK(f.decide.version() == 0);
  CHECK(f.decide.clocks()[0] == joiner(0));
  CHECK(f.push(2, 0, 2 * 64, 0) == lines{"apply 2 to 1"});
}

TEST_CASE("a second copy of a slot is acknowledged with the first") {
  shard_fixture f{job_of({bsp()})};
  f.push(1, 0, 0, 0);
  CHECK(f.push(2, 1, 0, 0).empty());
  CHECK(f.decide.holds({1}));
  CHECK_FALSE(f.decide.holds({2}));
  CHECK(
    f.push(3, 1, 1, 1)
    == lines{"apply 1 3 to 0", "ack 1 version 1", "ack 2 version 1 duplicate", "ack 3 version 1"});
  CHECK(f.decide.counters().applied == 2);
  CHECK(f.decide.counters().duplicates == 1);
  CHECK_FALSE(f.decide.holds({1}));
}

TEST_CASE("a batch of an applied clock is a duplicate") {
  shard_fixture f{job_of({bsp()})};
  f.push(1, 0, 0, 0);
  f.push(2, 1, 1, 0);
  CHECK(f.push(3, 1, 0, 0) == lines{"ack 3 version 1 duplicate"});
}

TEST_CASE("a clock whose sum is not finite is refused whole and may come again") {
  shard_fixture f{job_of({bsp()})};
  f.not_finite = true;
  f.push(1, 0, 0, 0);
  f.push(2, 1, 0, 0);
  CHECK(f.push(3, 1, 1, 0)
        == lines{"apply 1 3 to 0", "refuse 1 non_finite: nan", "refuse 2 non_finite: nan",
                 "refuse 3 non_finite: nan"});
  CHECK(f.decide.bsp_clocks() == 0);
  CHECK_FALSE(f.decide.holds({1}));
  f.not_finite = false;
  f.push(4, 0, 0, 0);
  CHECK(f.push(5, 1, 1, 0).size() == 3);
  CHECK(f.decide.bsp_clocks() == 1);
}

TEST_CASE("a bsp pull sees exactly the clocks before its own") {
  shard_fixture f{job_of({bsp()})};
  CHECK(f.pull(1, 0, 0, 0) == lines{"answer 1 version 0"});
  CHECK(f.pull(2, 0, 3, 1).empty());
  CHECK(f.decide.counters().waiting_pulls == 1);
  f.push(3, 0, 0, 0);
  CHECK(f.push(4, 1, 1, 0)
        == lines{"apply 3 4 to 0", "ack 3 version 1", "ack 4 version 1", "answer 2 version 1"});
  CHECK(f.pull(5, 1, 1, 0) == lines{"answer 5 version 1 previous 0"});
  f.push(6, 0, 2, 1);
  f.push(7, 1, 3, 1);
  CHECK(f.pull(8, 1, 1, 0) == lines{"answer 8 version 2"});
  CHECK(f.pull(9, 1, 2, 0) == lines{"answer 9 version 2 previous 0"});
}

TEST_CASE("pulls that wait for a clock are answered before the next one is applied") {
  shard_fixture f{job_of({bsp()})};
  f.pull(1, 0, 2, 1);
  f.push(2, 0, 2, 1);
  f.push(3, 0, 3, 2);
  f.push(4, 1, 0, 0);
  CHECK(f.push(5, 1, 1, 1)
        == lines{"apply 4 5 to 0", "ack 4 version 1", "ack 5 version 1", "answer 1 version 1",
                 "apply 2 3 to 0", "ack 2 version 2", "ack 3 version 2"});
}

TEST_CASE("a restored bsp shard goes on with the first clock that is not marked everywhere") {
  const job_spec job = job_of({bsp(), asp()}, 2, 5);
  auto partitions = fresh(job, {0, 1});
  for (shard_partition& p : partitions)
    p.applied = {batch_set{batch_id{2}}, set_of({})};
  CHECK(shard_fixture{job, partitions}.decide.bsp_clocks() == 1);
  SUBCASE("leaving alone partitions that are one clock further") {
    partitions[1].applied[0] = batch_set{batch_id{4}};
    shard_fixture f{job, partitions};
    f.push(1, f.step(0, 2, 0), {{0}});
    CHECK(f.push(2, f.step(1, 3, 0), {{0}})
          == lines{"apply 1 2 to 0 skip 0/1", "ack 1 version 1", "ack 2 version 1"});
  }
  SUBCASE("also at the end of the job") {
    for (shard_partition& p : partitions)
      p.applied[0] = batch_set{batch_id{5}};
    shard_fixture f{job, partitions};
    CHECK(f.decide.bsp_clocks() == 3);
    CHECK(f.push(1, f.step(0, 4, 0), {{0}}) == lines{"ack 1 version 0 duplicate"});
  }
}

// -- mixed modes --

TEST_CASE("a mixed push is acknowledged when all of its tables are applied") {
  shard_fixture f = admitted(job_of({bsp(), ssp(0), bsp()}));
  CHECK(f.push(1, 0, 0, 0) == lines{"apply 1 to 1"});
  CHECK(f.decide.holds({1}));
  CHECK(f.decide.batches_applied().size() == 0);
  CHECK(f.decide.clocks()[0].clock == 1);
  CHECK(f.push(2, 1, 1, 0, 1)
        == lines{"apply 2 to 1", "apply 1 2 to 0 2", "ack 1 version 3", "ack 2 version 3"});
  CHECK(f.decide.batches_applied() == batch_set{batch_id{2}});
  CHECK(f.decide.counters().applied == 2);
  CHECK(f.decide.counters().staleness_versions.count() == 2);
}

TEST_CASE("a second copy of a mixed push changes neither part") {
  shard_fixture f = admitted(job_of({bsp(), asp()}));
  f.push(1, 0, 0, 0);
  CHECK(f.push(2, 1, 0, 0).empty());
  CHECK(f.push(3, 1, 1, 0, 1)
        == lines{"apply 3 to 1", "apply 1 3 to 0", "ack 1 version 3", "ack 2 version 3 duplicate",
                 "ack 3 version 3"});
}

TEST_CASE("a mixed pull waits for its clock and for the slowest worker") {
  shard_fixture f = admitted(job_of({bsp(), ssp(0)}));
  f.push(1, 0, 0, 0);
  f.push(2, 0, 1, 1, 1);
  CHECK(f.decide.bsp_clocks() == 1);
  CHECK(f.pull(3, 0, 2, 2).empty());
  CHECK(f.pull(4, 1, 2, 2) == lines{"answer 3 version 3", "answer 4 version 3"});
  CHECK(f.pull(5, 1, 5, 2).empty());
}

// -- patience, cuts --

TEST_CASE("a pull that waited for too long is told for whom") {
  shard_fixture f = admitted(job_of({ssp(1)}));
  f.pull(1, 1, 0, 2);
  f.now = std::chrono::milliseconds{100};
  f.pull(2, 1, 0, 3);
  f.now = std::chrono::milliseconds{499};
  CHECK(f.tick().empty());
  f.now = std::chrono::milliseconds{500};
  CHECK(f.tick() == lines{"refuse 1 not_yet: waiting for worker 0 at clock 0"});
  f.now = std::chrono::milliseconds{700};
  CHECK(f.tick() == lines{"refuse 2 not_yet: waiting for worker 0 at clock 0"});
}

TEST_CASE("a pull that waits for an unheard worker says so") {
  shard_fixture f{job_of({ssp(1)})};
  f.pull(1, 1, 0, 2);
  f.now = std::chrono::seconds{1};
  CHECK(f.tick() == lines{"refuse 1 not_yet: waiting for worker 0, not heard of yet"});
}

TEST_CASE("a pull that waits for a slot says which") {
  shard_fixture f{job_of({bsp()})};
  f.push(1, 0, 0, 0);
  f.pull(2, 0, 2, 1);
  f.now = std::chrono::seconds{1};
  CHECK(f.tick() == lines{"refuse 2 not_yet: waiting for batch 1 of clock 0"});
}

TEST_CASE("an observer reads the latest values without being known") {
  shard_fixture f{job_of({bsp(), ssp(0)})};
  step_header nobody;
  nobody.batch = {99};
  nobody.worker = {9};
  CHECK(f.pull(1, nobody, {{0}, {1}}, true) == lines{"answer 1 version 0"});
  CHECK(f.decide.pull_clock_max() == 0);
}

TEST_CASE("without a bsp table a cut is made at once") {
  shard_fixture f{job_of({asp()})};
  CHECK(f.request_cut(4, 7) == lines{"cut 4"});
  CHECK(f.request_cut(5, 0) == lines{"cut 5"});
}

TEST_CASE("a cut has the entries that are pending when it is requested and no later ones") {
  for (const bool is_applied : {true, false}) {
    shard_fixture f{job_of({asp()})};
    f.hold_commits = true;
    f.push(1, 0, 0, 0);
    f.push(2, 1, 1, 0);
    CHECK(f.request_cut(4, 0).empty());
    f.push(3, 0, 2, 1);
    f.commit();
    f.not_finite = !is_applied; // An entry that is discarded is not waited for either.
    CHECK(f.commit().back() == "cut 4");
    CHECK(f.decide.batches_applied().size() == (is_applied ? 2 : 1));
    f.not_finite = false;
    f.commit();
    CHECK(f.decide.batches_applied().size() == (is_applied ? 3 : 2));
  }
}

TEST_CASE("with a bsp table a cut waits for its clock, and only the newest") {
  shard_fixture f{job_of({bsp()})};
  CHECK(f.request_cut(1, 0) == lines{"cut 1"});
  CHECK(f.request_cut(2, 1).empty());
  CHECK(f.request_cut(3, 1).empty());
  f.pull(1, 0, 2, 1);
  f.push(2, 0, 0, 0);
  f.push(3, 0, 2, 1);
  f.push(4, 0, 3, 2);
  CHECK(f.push(5, 1, 1, 1)
        == lines{"apply 2 5 to 0", "ack 2 version 1", "ack 5 version 1", "answer 1 version 1",
                 "cut 3", "apply 3 4 to 0", "ack 3 version 2", "ack 4 version 2"});
  CHECK(f.request_cut(4, 1) == lines{"cut 4"});
}

TEST_CASE("a cut after the last clock of the job is not waited for in vain") {
  shard_fixture f{job_of({bsp()}, 2, 2)};
  CHECK(f.request_cut(1, 50).empty());
  f.push(1, 0, 0, 0);
  CHECK(f.push(2, 1, 1, 0).back() == "cut 1");
}

} // namespace

} // namespace troupe::shard_test
