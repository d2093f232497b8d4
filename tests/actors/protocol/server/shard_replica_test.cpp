// A shard as one replica of a chain: entries that are pending, followers, changes of the head.
#include "actors/protocol/server/shard.hpp"

#include "tests/actors/shard_fixture.hpp"

#include "doctest/doctest.h"

namespace troupe::shard_replica_test {

namespace {

using namespace test;

/// Returns a head of workers 0 and 1, admitted at clock 0. Tests commit its entries by hand.
shard_fixture head_of(const job_spec& job) {
  shard_fixture f{job, {}, {joiner(0), joiner(1)}};
  f.hold_commits = true;
  return f;
}

/// Returns a follower with the pending entries of `head`. The coordinator does not tell it which
/// workers are being admitted.
shard_fixture follower_of(const shard_fixture& head) {
  shard_fixture f{head.job};
  f.hold_commits = true;
  for (const propose_effect& entry : head.log)
    f.append(entry.entry);
  return f;
}

void check_same_state(const shard& a, const shard& b) {
  CHECK(a.version() == b.version());
  CHECK(a.batches_applied() == b.batches_applied());
  CHECK(a.bsp_clocks() == b.bsp_clocks());
  CHECK(a.clocks() == b.clocks());
  const auto left = a.partitions(), right = b.partitions();
  REQUIRE(left.size() == right.size());
  for (std::size_t i = 0; i < left.size(); ++i) {
    CHECK(left[i].version == right[i].version);
    CHECK(left[i].applied == right[i].applied);
  }
}

// -- pending entries --

TEST_CASE("any number of pushes is pending, and nothing changes before they are final") {
  shard_fixture f = head_of(job_of({asp()}));
  CHECK(f.push(1, 0, 3, 0) == lines{"propose 1 to 0"});
  CHECK(f.push(2, 1, 4, 0) == lines{"propose 2 to 0"});
  CHECK(f.push(3, 0, 5, 1) == lines{"propose 3 to 0"});
  CHECK(f.decide.pending() == 3);
  CHECK(f.decide.version() == 0);
  CHECK(f.decide.batches_applied().size() == 0);
  CHECK(f.decide.clocks() == std::vector{member(0), member(1)});
  CHECK_FALSE(f.decide.holds({1}));
  CHECK(f.pull(4, 0, 6, 2) == lines{"answer 4 version 0"});
  CHECK(f.commit() == lines{"apply 1 to 0", "ack 1 version 1"});
  CHECK(f.commit() == lines{"apply 2 to 0 late 1", "ack 2 version 2"});
  CHECK(f.commit() == lines{"apply 3 to 0 late 2", "ack 3 version 3"});
  CHECK(f.decide.pending() == 0);
  CHECK(f.decide.clocks() == std::vector{member(0, 2), member(1, 1)});
}

TEST_CASE("a repeated push waits for the pending entry of its batch") {
  shard_fixture f = head_of(job_of({asp(), asp()}));
  f.push(1, 0, 3, 0);
  CHECK(f.push(2, 1, 3, 0).empty());
  CHECK(f.push(3, f.step(1, 3, 0), {{1}}).empty());
  CHECK_FALSE(f.decide.holds({2}));
  SUBCASE("and is a duplicate when that was applied") {
    CHECK(f.commit()
          == lines{"apply 1 to 0 1", "ack 1 version 1", "ack 2 version 1 duplicate",
                   "ack 3 version 1 duplicate"});
    CHECK(f.decide.clocks() == std::vector{member(0, 1), member(1, 1)});
    CHECK(f.decide.counters().applied == 1);
  }
  SUBCASE("and is refused when that was discarded") {
    f.not_finite = true;
    CHECK(f.commit()
          == lines{"apply 1 to 0 1", "refuse 1 non_finite: nan", "refuse 2 non_finite: nan",
                   "refuse 3 non_finite: nan"});
    CHECK(f.push(4, 0, 3, 0) == lines{"propose 4 to 0 1"});
  }
}

TEST_CASE("a push whose batch is pending for some of its tables only comes again later") {
  shard_fixture f = head_of(job_of({asp(), asp()}));
  f.push(1, f.step(0, 3, 0), {{1}});
  CHECK(f.push(2, 0, 3, 0) == lines{"refuse 2 not_ready: some tables have batch 3 pending"});
  f.commit();
  CHECK(f.push(3, 0, 3, 0) == lines{"propose 3 to 0"});
}

TEST_CASE("a bsp clock is proposed once, and the next one when it was applied") {
  shard_fixture f = head_of(job_of({bsp()}));
  f.push(1, 0, 0, 0);
  CHECK(f.push(2, 1, 1, 0) == lines{"propose 1 2 to 0"});
  CHECK_FALSE(f.decide.holds({1}));
  CHECK(f.push(3, 1, 0, 0).empty());
  CHECK(f.push(4, 0, 2, 1).empty());
  CHECK(f.push(5, 1, 3, 1).empty());
  CHECK(f.decide.holds({4}));
  CHECK(f.decide.pending() == 1);
  CHECK(f.commit()
        == lines{"apply 1 2 to 0", "ack 1 version 1", "ack 3 version 1 duplicate",
                 "ack 2 version 1", "propose 4 5 to 0"});
  CHECK(f.commit() == lines{"apply 4 5 to 0", "ack 4 version 2", "ack 5 version 2"});
}

TEST_CASE("a mixed push is held for its clock while its first entry is pending") {
  shard_fixture f = head_of(job_of({bsp(), asp()}));
  CHECK(f.push(1, 0, 0, 0) == lines{"propose 1 to 1"});
  CHECK(f.push(2, 1, 1, 0) == lines{"propose 2 to 1"});
  CHECK(f.decide.holds({1}));
  CHECK(f.commit() == lines{"apply 1 to 1"});
  CHECK(f.commit() == lines{"apply 2 to 1 late 1", "propose 1 2 to 0"});
  CHECK_FALSE(f.decide.holds({1}));
  CHECK(f.commit() == lines{"apply 1 2 to 0", "ack 1 version 3", "ack 2 version 3"});
}

TEST_CASE("what a worker has pushed counts for ssp when it is applied") {
  shard_fixture f = head_of(job_of({ssp(0)}));
  f.push(1, 0, 0, 0);
  f.push(2, 1, 1, 0);
  CHECK(f.pull(3, 0, 2, 1).empty());
  CHECK(f.pull(4, 1, 3, 1).empty());
  CHECK(f.commit() == lines{"apply 1 to 0", "ack 1 version 1"});
  CHECK(
    f.commit()
    == lines{"apply 2 to 0 late 1", "ack 2 version 2", "answer 3 version 2", "answer 4 version 2"});
}

TEST_CASE("a duplicate does not overtake an earlier clock of its worker that is pending") {
  shard_fixture f = head_of(job_of({ssp(0)}));
  f.push(1, 1, 0, 0);
  f.commit();
  f.push(2, 0, 1, 0);
  CHECK(f.push(3, 0, 0, 1) == lines{"ack 3 version 1 duplicate"});
  CHECK(f.decide.clocks()[0].clock == 0);
  SUBCASE("and counts when that was applied") { f.commit(); }
  SUBCASE("and counts when that was discarded") {
    f.not_finite = true;
    f.commit();
  }
  CHECK(f.decide.clocks()[0].clock == 2);
}

// -- followers --

TEST_CASE("a follower that applies the same entries has the same state") {
  shard_fixture head = head_of(job_of({bsp(), ssp(9)}));
  shard_fixture other{head.job, {}, {joiner(0), joiner(1)}};
  const auto commit_both = [&](bool is_finite) {
    other.append(head.log.front().entry);
    head.not_finite = other.not_finite = !is_finite;
    head.commit();
    CHECK(other.commit().size() == 1);
    check_same_state(head.decide, other.decide);
  };
  head.push(1, 0, 0, 0);
  head.push(2, 1, 1, 0);
  commit_both(true);
  commit_both(true);
  commit_both(false); // The clock of both tables.
  CHECK(head.decide.bsp_clocks() == 0);
  head.push(3, 0, 0, 1);
  head.push(4, 1, 1, 1);
  commit_both(true);
  CHECK(other.decide.bsp_clocks() == 1);
  CHECK(other.decide.version() == 3);
}

TEST_CASE("entries of workers that are not listed here are applied all the same") {
  shard_fixture head = head_of(job_of({asp()}));
  head.push(1, 1, 0, 0);
  shard_fixture f = follower_of(head);
  f.set_workers({member(0)});
  CHECK(f.commit() == lines{"apply b0 to 0"});
  CHECK(f.decide.batches_applied().size() == 1);
  CHECK(f.decide.clocks() == std::vector{joiner(0)});
}

// -- another head --

TEST_CASE("a new head takes repeated pushes for what they are") {
  shard_fixture head = head_of(job_of({bsp(), asp()}));
  head.push(1, 0, 0, 0);
  head.push(2, 1, 1, 0);
  shard_fixture f = follower_of(head);
  head.commit();
  f.commit();
  CHECK(f.push(11, 0, 0, 0).empty()); // Applied to table 1: the push fills a slot now.
  CHECK(f.push(12, 1, 1, 0).empty()); // The push is pending.
  CHECK(f.decide.holds({11}));
  CHECK(f.decide.holds({12}));
  CHECK(f.commit() == lines{"apply b1 to 1 late 1", "propose 11 12 to 0"});
  CHECK(f.commit() == lines{"apply 11 12 to 0", "ack 11 version 3", "ack 12 version 3"});
  CHECK(f.push(13, 0, 0, 0) == lines{"ack 13 version 3 duplicate"});
}

TEST_CASE("a new head waits with the slots of a clock that the last one proposed") {
  shard_fixture head = head_of(job_of({bsp()}));
  head.push(1, 0, 0, 0);
  head.push(2, 1, 1, 0);
  shard_fixture f = follower_of(head);
  CHECK(f.push(11, 0, 0, 0).empty());
  CHECK(f.push(12, 1, 1, 0).empty());
  CHECK(f.push(13, 0, 2, 1).empty());
  CHECK_FALSE(f.decide.holds({11}));
  CHECK(f.decide.holds({13}));
  SUBCASE("until it is applied") {
    CHECK(f.commit()
          == lines{"apply b0 b1 to 0", "ack 11 version 1 duplicate", "ack 12 version 1 duplicate"});
    CHECK(f.decide.counters().applied == 0);
    CHECK(f.push(14, 1, 3, 1) == lines{"propose 13 14 to 0"});
  }
  SUBCASE("or discarded, and they may come again") {
    f.not_finite = true;
    CHECK(f.commit()
          == lines{"apply b0 b1 to 0", "refuse 11 non_finite: nan", "refuse 12 non_finite: nan"});
    f.push(15, 0, 0, 0);
    CHECK(f.push(16, 1, 1, 0) == lines{"propose 15 16 to 0"});
  }
}

TEST_CASE("a new head promises no clock before one that the last one may have answered") {
  shard_fixture head = head_of(job_of({ssp(2)}));
  for (std::uint64_t clock = 0; clock < 3; ++clock) {
    head.pull(100 + clock, 0, clock, clock);
    head.push(clock + 1, 0, clock, clock);
    head.push(clock + 11, 1, clock + 8, clock);
  }
  while (head.log.size() > 2)
    head.commit();
  CHECK(head.pull(200, 0, 5, 3) == lines{"answer 200 version 4"});
  shard_fixture f{head.job};
  f.append({{f.step(0, 2, 2)}, {{0}}});
  f.set_workers({member(0), member(1), joiner(2)});
  CHECK(f.decide.clocks()[2] == joiner(2)); // The head's promise is the one that counts.
  f.decide.lead();
  CHECK(f.decide.pull_clock_max() >= head.decide.pull_clock_max());
  CHECK(f.decide.clocks()[2] == member(2, 1));
}

TEST_CASE("a replica that leads no more refuses everybody and keeps what is pending") {
  shard_fixture f = head_of(job_of({bsp(), ssp(0)}));
  f.push(1, 0, 0, 0);
  f.push(2, 1, 0, 0);
  f.commit();
  f.push(3, 0, 1, 1);
  f.pull(4, 0, 2, 2);
  const std::string why = " not_ready: this replica does not lead";
  CHECK(f.step_down()
        == lines{"refuse 3" + why, "refuse 1" + why, "refuse 2" + why, "refuse 4" + why});
  CHECK_FALSE(f.decide.holds({1}));
  CHECK(f.decide.pending() == 1);
  CHECK(f.commit() == lines{"apply 3 to 1 late 1"});
  CHECK(f.decide.version() == 2);
}

TEST_CASE("a replica that truncates has a past state of its chain") {
  shard_fixture f = head_of(job_of({bsp(), asp()}));
  f.push(1, 0, 0, 0);
  f.push(2, 1, 1, 0);
  shard_fixture other = follower_of(f);
  f.commit();
  other.commit();
  f.push(3, 1, 1, 0);
  const auto why = [](int token) {
    return "refuse " + std::to_string(token) + " not_ready: this replica does not lead";
  };
  CHECK(f.truncate() == lines{why(2), why(3), why(1)});
  CHECK(f.decide.pending() == 0);
  CHECK(f.decide.batches_applied() == other.decide.batches_applied());
  CHECK(f.decide.version() == 1);
  SUBCASE("and follows again from there") {
    f.append(other.log.front().entry);
    CHECK(f.commit() == lines{"apply b1 to 1 late 1"});
    other.commit();
    CHECK(f.decide.version() == other.decide.version());
  }
  SUBCASE("also where a clock was pending") {
    f.push(4, 0, 0, 0);
    f.push(5, 1, 1, 0);
    f.commit();
    CHECK(f.decide.pending() == 1);
    CHECK(f.truncate() == lines{why(4), why(5)});
    f.push(6, 0, 0, 0);
    CHECK(f.push(7, 1, 1, 0) == lines{"propose 6 7 to 0"});
  }
}

} // namespace

} // namespace troupe::shard_replica_test
