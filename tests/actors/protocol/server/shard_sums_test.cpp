// Pushes that are the sum of several batches.
#include "actors/protocol/server/shard.hpp"

#include "tests/actors/shard_fixture.hpp"

#include "doctest/doctest.h"

namespace troupe::shard_sums_test {

namespace {

using namespace test;

batch_set set_of(const std::vector<std::uint64_t>& batches) {
  batch_set set;
  for (const std::uint64_t batch : batches)
    set.insert({batch});
  return set;
}

/// Returns the steps of a sum from workers 0 and 1.
std::vector<step_header> sum_of(const shard_fixture& f, const std::vector<std::uint64_t>& batches,
                                std::uint64_t clock = 0) {
  std::vector<step_header> steps;
  for (const std::uint64_t batch : batches)
    steps.push_back(f.step(static_cast<std::uint32_t>(steps.size() % 2), batch, clock));
  return steps;
}

TEST_CASE("a sum is one step, and marks all of its batches") {
  shard_fixture f{job_of({asp(), asp()})};
  CHECK(f.push(1, sum_of(f, {3, 5}), f.all_tables()) == lines{"apply 1 to 0 1", "ack 1 version 1"});
  CHECK(f.decide.batches_applied() == set_of({3, 5}));
  CHECK(f.decide.counters().applied == 2);
}

TEST_CASE("a sum is a duplicate where all of its batches are marked") {
  shard_fixture f{job_of({asp()})};
  f.push(1, 0, 3, 0);
  f.push(2, 0, 5, 1);
  CHECK(f.push(3, sum_of(f, {3, 5}), f.all_tables()) == lines{"ack 3 version 2 duplicate"});
  CHECK(f.decide.version() == 2);
}

TEST_CASE("a sum of which some batches are marked is refused, and nothing changes") {
  shard_fixture f{job_of({asp()})};
  f.push(1, 0, 3, 0);
  const lines refused{"refuse 2 sum_not_applicable: some batches of the sum have been applied"};
  CHECK(f.push(2, sum_of(f, {3, 5}), f.all_tables()) == refused);
  CHECK(f.push(2, sum_of(f, {5, 3}), f.all_tables()) == refused);
  CHECK(f.decide.batches_applied() == set_of({3}));
  CHECK(f.decide.version() == 1);
  CHECK(f.push(3, 1, 5, 0) == lines{"apply 3 to 0 late 1", "ack 3 version 2"});
}

TEST_CASE("a sum is refused where its batches are marked on different partitions or tables") {
  const job_spec job = job_of({asp(), asp()});
  const std::string why = " sum_not_applicable: some batches of the sum have been applied";
  auto partitions = fresh(job, {0, 1});
  partitions[1].applied = {set_of({3}), set_of({3})};
  shard_fixture f{job, partitions};
  CHECK(f.push(1, sum_of(f, {3, 5}), f.all_tables()) == lines{"refuse 1" + why});
  shard_fixture g{job};
  g.push(1, g.step(0, 3, 0), {{1}});
  CHECK(g.push(2, sum_of(g, {3, 5}), g.all_tables()) == lines{"refuse 2" + why});
}

TEST_CASE("a sum leaves alone the partitions that have all of its batches") {
  const job_spec job = job_of({asp()});
  auto partitions = fresh(job, {0, 1});
  partitions[1].applied = {set_of({3, 5})};
  shard_fixture f{job, partitions};
  CHECK(f.push(1, sum_of(f, {3, 5}), f.all_tables())
        == lines{"apply 1 to 0 skip 0/1", "ack 1 version 1"});
}

TEST_CASE("a sum waits with the pending entry that has all of its batches, else it comes again") {
  shard_fixture f{job_of({asp()})};
  f.hold_commits = true;
  CHECK(f.push(1, sum_of(f, {3, 5}), f.all_tables()) == lines{"propose 1 to 0"});
  CHECK(f.push(2, sum_of(f, {5, 3}), f.all_tables()).empty());
  CHECK(f.push(3, 1, 5, 0).empty());
  CHECK(f.push(4, sum_of(f, {5, 7}), f.all_tables())
        == lines{"refuse 4 not_ready: some tables have batch 5 or others pending"});
  CHECK(f.commit()
        == lines{"apply 1 to 0", "ack 1 version 1", "ack 2 version 1 duplicate",
                 "ack 3 version 1 duplicate"});
  CHECK(f.push(5, sum_of(f, {5, 7}), f.all_tables())
        == lines{"refuse 5 sum_not_applicable: some batches of the sum have been applied"});
}

TEST_CASE("a batch of a sum that is not finite may come again alone") {
  shard_fixture f{job_of({asp()})};
  f.not_finite = true;
  CHECK(f.push(1, sum_of(f, {3, 5}), f.all_tables())
        == lines{"apply 1 to 0", "refuse 1 non_finite: nan"});
  CHECK(f.decide.batches_applied() == set_of({}));
  f.not_finite = false;
  CHECK(f.push(2, 1, 5, 0) == lines{"apply 2 to 0", "ack 2 version 1"});
}

TEST_CASE("a sum with a batch of a worker that may not push is refused") {
  shard_fixture f{job_of({asp()})};
  auto steps = sum_of(f, {3, 5});
  steps[1].worker = {7};
  CHECK(f.push(1, steps, f.all_tables()).front().starts_with("refuse 1 sum_not_applicable"));
  f.set_workers({{{0}, first_start(0), 0, true}, {{1}, {2000}, 0, true}});
  CHECK(f.push(2, sum_of(f, {3, 5}), f.all_tables())
          .front()
          .starts_with("refuse 2 sum_not_applicable"));
  f.set_workers({{{0}, {2000}, 0, true}, {{1}, {2000}, 0, true}});
  CHECK(f.push(3, sum_of(f, {3, 5}), f.all_tables()).front().starts_with("refuse 3 fenced"));
  f.set_workers({});
  CHECK(f.push(4, steps, f.all_tables()).front().starts_with("refuse 4 "));
  CHECK(f.decide.batches_applied() == set_of({}));
}

TEST_CASE("a sum that names a batch twice, or bsp tables, is refused") {
  shard_fixture f{job_of({asp()})};
  CHECK(f.push(1, sum_of(f, {3, 3}), f.all_tables())
        == lines{"refuse 1 malformed: push lists a batch twice"});
  shard_fixture g{job_of({bsp()})};
  CHECK(g.push(1, sum_of(g, {0, 1}), g.all_tables())
        == lines{"refuse 1 sum_not_applicable: slots of a bsp clock come one by one"});
}

TEST_CASE("a sum with two batches of one worker is refused, so that there are few") {
  shard_fixture f{job_of({asp()})};
  auto steps = sum_of(f, {3, 5});
  steps[1].worker = steps[0].worker;
  CHECK(f.push(1, steps, f.all_tables()) == lines{"refuse 1 malformed: push lists a worker twice"});
  CHECK(f.decide.batches_applied() == set_of({}));
}

TEST_CASE("ssp: a sum is heard of as the push of each of its workers") {
  shard_fixture f{job_of({ssp(0)}), {}, {joiner(0), joiner(1)}};
  CHECK(f.pull(1, 0, 4, 1).empty()); // The pull needs clock 0 of worker 1.
  CHECK(f.push(2, sum_of(f, {2, 3}), f.all_tables())
        == lines{"apply 2 to 0", "ack 2 version 1", "answer 1 version 1"});
  CHECK(f.decide.clocks() == std::vector{member(0, 1), member(1, 1)});
}

TEST_CASE("ssp: a pull for several workers is heard of as one of each") {
  shard_fixture f{job_of({ssp(0)})};
  shard_effects effects;
  const pull_terms alone{.step = f.step(0, 4, 1), .tables = f.all_tables()};
  f.decide.pull({1}, alone, f.now, effects);
  CHECK(f.carry_out(effects).empty()); // Worker 1 has not been heard yet.
  auto both = alone;
  both.others = {f.step(1, 5, 1)};
  effects.clear();
  f.decide.pull({2}, both, f.now, effects);
  CHECK(f.carry_out(effects) == lines{"answer 1 version 0", "answer 2 version 0"});
}

TEST_CASE("a pull for several workers is refused where none of them may pull") {
  shard_fixture f{job_of({ssp(0)}), {}, {joiner(0), joiner(1)}};
  const auto pull = [&](std::uint64_t token) {
    shard_effects effects;
    f.decide.pull({token},
                  {.step = f.step(0, 4, 3), .others = {f.step(1, 5, 3)}, .tables = f.all_tables()},
                  f.now, effects);
    return f.carry_out(effects);
  };
  CHECK(f.set_workers({joiner(1), joiner(3)}).empty());
  CHECK(pull(1).empty()); // It is for worker 1, which waits for worker 3.
  const auto gone = f.set_workers({joiner(3)});
  REQUIRE(gone.size() == 1);
  CHECK(gone.front().starts_with("refuse 1 not_ready"));
  CHECK(pull(2).front().starts_with("refuse 2 not_ready"));
}

} // namespace

} // namespace troupe::shard_sums_test
