// Partial pushes: those of the later parts of a line, which end no clock of its worker.
#include "actors/protocol/server/replica.hpp"
#include "actors/protocol/server/shard.hpp"

#include "tests/actors/shard_fixture.hpp"

#include "doctest/doctest.h"

namespace troupe::shard_lines_test {

namespace {

using namespace test;

/// Returns a shard whose workers 0 and 1 were admitted at clock 0.
shard_fixture admitted(const job_spec& job) {
  return shard_fixture{job, {}, {joiner(0), joiner(1)}};
}

step_header partial(const shard_fixture& f, std::uint32_t worker, std::uint64_t batch,
                    std::uint64_t clock) {
  auto step = f.step(worker, batch, clock);
  step.is_partial = true;
  return step;
}

bool has_batch(const shard_fixture& f, std::uint64_t batch) {
  return f.decide.batches_applied().contains({batch});
}

TEST_CASE("each push of a line is a step of its tables, and the batch is applied with the last") {
  shard_fixture f{job_of({asp(), asp(), ssp(1)})};
  CHECK(f.push(1, partial(f, 0, 3, 0), {{2}}) == lines{"apply 1 to 2", "ack 1 version 1"});
  CHECK_FALSE(has_batch(f, 3));
  CHECK(f.push(2, partial(f, 0, 3, 0), {{1}}) == lines{"apply 2 to 1 late 1", "ack 2 version 2"});
  CHECK_FALSE(has_batch(f, 3));
  CHECK(f.push(3, f.step(0, 3, 0), {{0}}) == lines{"apply 3 to 0 late 2", "ack 3 version 3"});
  CHECK(has_batch(f, 3));
}

TEST_CASE("a partial push ends no clock of its worker, and the first part's push does") {
  shard_fixture f = admitted(job_of({ssp(1), ssp(1)}));
  f.push(1, partial(f, 0, 3, 5), {{1}});
  CHECK(f.decide.clocks()[0] == member(0, 5));
  CHECK(f.push(2, partial(f, 0, 3, 5), {{1}}) == lines{"ack 2 version 1 duplicate"});
  CHECK(f.decide.clocks()[0] == member(0, 5));
  f.push(3, f.step(0, 3, 5), {{0}});
  CHECK(f.decide.clocks()[0] == member(0, 6));
}

TEST_CASE("ssp: a reader waits for the push of a line's first part") {
  shard_fixture f = admitted(job_of({ssp(0), ssp(0)}));
  CHECK(f.pull(1, 0, 4, 1).empty());
  CHECK(f.push(2, partial(f, 1, 3, 0), {{1}}) == lines{"apply 2 to 1", "ack 2 version 1"});
  CHECK(f.push(3, f.step(1, 3, 0), {{0}})
        == lines{"apply 3 to 0 late 1", "ack 3 version 2", "answer 1 version 2"});
}

TEST_CASE("a partial push is a duplicate if its own tables have the batch") {
  shard_fixture f{job_of({asp(), asp(), asp()})};
  f.push(1, partial(f, 0, 3, 0), {{1}});
  CHECK(f.push(2, partial(f, 0, 3, 0), {{1}}) == lines{"ack 2 version 1 duplicate"});
  CHECK(f.push(3, partial(f, 0, 3, 0), {{2}}) == lines{"apply 3 to 2 late 1", "ack 3 version 2"});
  CHECK(f.push(4, f.step(1, 3, 7), {{0}, {1}, {2}})
        == lines{"apply 4 to 0 late 2", "ack 4 version 3"});
  CHECK(f.decide.counters().duplicates == 1);
}

TEST_CASE("pushes of one batch for different tables are pending beside each other") {
  shard_fixture f = admitted(job_of({ssp(0), ssp(0), ssp(0)}));
  f.hold_commits = true;
  CHECK(f.push(1, partial(f, 0, 3, 0), {{1}}) == lines{"propose 1 to 1"});
  CHECK(f.push(2, partial(f, 0, 3, 0), {{2}}) == lines{"propose 2 to 2"});
  CHECK(f.push(3, partial(f, 0, 3, 0), {{1}}).empty());
  CHECK(f.push(4, f.step(0, 3, 0), {{0}}) == lines{"propose 4 to 0"});
  CHECK(f.push(5, partial(f, 0, 3, 0), {{1}, {2}})
        == lines{"refuse 5 not_ready: some tables have batch 3 pending"});
  CHECK(f.commit() == lines{"apply 1 to 1", "ack 1 version 1", "ack 3 version 1 duplicate"});
  CHECK(f.commit() == lines{"apply 2 to 2 late 1", "ack 2 version 2"});
  CHECK(f.decide.clocks()[0].clock == 0);
  CHECK(f.commit() == lines{"apply 4 to 0 late 2", "ack 4 version 3"});
  CHECK(f.decide.clocks()[0].clock == 1);
  CHECK(has_batch(f, 3));
}

TEST_CASE("a clock is not over while a partial push of it is pending") {
  shard_fixture f = admitted(job_of({ssp(0), ssp(0)}));
  f.push(1, f.step(0, 3, 0), {{0}});
  f.hold_commits = true;
  f.push(2, partial(f, 0, 4, 1), {{1}});
  CHECK(f.push(3, f.step(0, 3, 1), {{0}}) == lines{"ack 3 version 1 duplicate"});
  CHECK(f.decide.clocks()[0].clock == 1);
  f.commit();
  CHECK(f.decide.clocks()[0].clock == 2);
}

TEST_CASE("a follower takes a partial entry for no end of a clock, and promises no more for it") {
  shard_fixture head = admitted(job_of({ssp(2), ssp(2)}));
  head.hold_commits = true;
  head.push(1, partial(head, 0, 3, 4), {{1}});
  shard_fixture f{head.job};
  f.append(head.log.front().entry);
  CHECK(f.decide.pull_clock_max() == 4);
  f.commit();
  CHECK(f.decide.clocks()[0] == member(0, 4));
  f.append({{f.step(0, 3, 4)}, {{0}}});
  CHECK(f.decide.pull_clock_max() == 5);
  f.commit();
  CHECK(f.decide.clocks()[0] == member(0, 5));
  CHECK(has_batch(f, 3));
}

TEST_CASE("an entry of a log keeps that its push was partial") {
  push_request pushed;
  pushed.step.is_partial = true;
  log_entry entry;
  entry.tables = {{1}};
  entry.pushes = {std::make_shared<const push_request>(pushed)};
  CHECK(header_of(entry).steps == std::vector{pushed.step});
}

TEST_CASE("a partial push of a bsp table is malformed, and one of other tables is not") {
  shard_fixture f{job_of({bsp(), asp()})};
  CHECK(f.push(1, partial(f, 0, 0, 0), {{0}, {1}})
        == lines{"refuse 1 malformed: a partial push names a bsp table"});
  CHECK(f.decide.version() == 0);
  CHECK(f.push(2, partial(f, 0, 0, 0), {{1}}) == lines{"apply 2 to 1", "ack 2 version 1"});
}

TEST_CASE("a sum with a partial push is refused, and its batches may come one by one") {
  shard_fixture f{job_of({asp(), asp()})};
  const std::vector steps{f.step(0, 3, 0), partial(f, 1, 5, 0)};
  CHECK(f.push(1, steps, {{1}})
        == lines{"refuse 1 sum_not_applicable: partial pushes come one by one"});
  CHECK(f.push(2, steps[1], {{1}}) == lines{"apply 2 to 1", "ack 2 version 1"});
}

TEST_CASE("a partial push of a line that was replaced is fenced") {
  shard_fixture f{job_of({asp(), asp()})};
  f.set_workers({{{0}, {2000}, 0, true}, member(1)});
  CHECK(f.push(1, partial(f, 0, 3, 0), {{1}}).front().starts_with("refuse 1 fenced"));
  CHECK(f.decide.version() == 0);
}

} // namespace

} // namespace troupe::shard_lines_test
