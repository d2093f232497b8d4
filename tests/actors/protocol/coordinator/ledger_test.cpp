#include "actors/protocol/coordinator/ledger.hpp"

#include "doctest/doctest.h"

#include <random>

namespace troupe::ledger_test {
namespace {

job_spec job_of(consistency_mode mode, std::uint64_t batches, std::uint64_t epochs = 1,
                std::uint32_t workers = 2) {
  job_spec job;
  job.name = "ledger";
  job.workers = workers;
  job.batch_samples = 1;
  job.samples = batches;
  job.epochs = epochs;
  table_spec table;
  table.name = "w";
  table.shape = {16};
  table.sync.mode = mode;
  job.tables = {table};
  return job;
}

constexpr worker_id w0{0}, w1{1}, w2{2};

std::vector<batch_id> batches_of(const lease& what) {
  std::vector<batch_id> all;
  for (std::uint32_t i = 0; i < what.count; ++i)
    all.push_back(what.at(i));
  return all;
}

std::set<std::uint64_t> held_by(const ledger& books, worker_id worker) {
  std::set<std::uint64_t> all;
  for (const auto& one : books.leases_of(worker)) {
    for (const auto batch : batches_of(one))
      all.insert(batch.value);
  }
  return all;
}

void finish_all(ledger& books, worker_id worker) {
  std::vector<lease_progress> done;
  for (const auto& one : books.leases_of(worker))
    done.push_back({one, batches_of(one)});
  books.progress(worker, done, false);
}

TEST_CASE("new work goes only to workers below leases_ahead, in order and without gaps") {
  ledger books(job_of(consistency_mode::asp, 1000), {16, 2});
  std::uint64_t next = 1;
  CHECK(books.hand_out({w0, w1}, next) == std::set{w0, w1});
  CHECK(books.leases_of(w0).size() == 2);
  CHECK(books.leases_of(w1).size() == 2);
  CHECK(books.cursor() == batch_id{64});
  CHECK(books.remaining() == 1000 - 64);
  CHECK(next == 5);
  CHECK(books.hand_out({w0, w1}, next).empty());
  CHECK(next == 5);
}

TEST_CASE("a slow worker gets short leases, of new work and of what is redone") {
  ledger books(job_of(consistency_mode::asp, 1000), {16, 2});
  const std::map<worker_id, std::uint32_t> slow{{w0, 2}};
  std::uint64_t next = 1;
  books.hand_out({w0, w1}, next, slow);
  CHECK(held_by(books, w0).size() == 4);
  CHECK(held_by(books, w1).size() == 32);
  books.lost(w1);
  books.hand_out({w0, w2}, next, slow);
  CHECK(held_by(books, w0).size() == 4);
  CHECK(held_by(books, w2).size() == 32);
}

TEST_CASE("leases shrink near the end") {
  ledger books(job_of(consistency_mode::asp, 20), {16, 2});
  std::uint64_t next = 1;
  books.hand_out({w0, w1}, next);
  std::vector<std::uint32_t> counts;
  for (const auto worker : {w0, w1})
    for (const auto& one : books.leases_of(worker))
      counts.push_back(one.count);
  CHECK(counts == std::vector<std::uint32_t>{5, 2, 3, 3});
}

TEST_CASE("a lease whose batches are all done is dropped, and they are finished until settled") {
  ledger books(job_of(consistency_mode::asp, 8), {4, 2});
  std::uint64_t next = 1;
  books.hand_out({w0}, next);
  const auto first = books.leases_of(w0).front();
  CHECK_FALSE(books.progress(w0, {{first, {first.at(0)}}}, false));
  CHECK(books.progress(w0, {{first, batches_of(first)}}, false));
  CHECK(books.leases_of(w0).size() == 1);
  CHECK(books.settled() == 0);
  CHECK(books.acknowledged() == batch_set(batch_id{4}));
  books.settle(batch_set(batch_id{4}));
  CHECK(books.settled() == 4);
  CHECK_FALSE(books.complete());
}

TEST_CASE("a lost worker's open batches are queued and go to others first") {
  ledger books(job_of(consistency_mode::asp, 1000), {8, 2});
  std::uint64_t next = 1;
  books.hand_out({w0, w1}, next);
  const auto first = books.leases_of(w0).front();
  books.progress(w0, {{first, {first.at(0), first.at(1)}}}, false);
  const auto held = held_by(books, w0);
  const auto before = books.remaining();
  books.lost(w0);
  CHECK(books.remaining() - before == 14);
  CHECK_FALSE(books.holds_work(w0));
  finish_all(books, w1);
  books.hand_out({w1}, next);
  for (const auto batch : held)
    CHECK(held_by(books, w1).contains(batch)
          == (batch != first.at(0).value && batch != first.at(1).value));
}

TEST_CASE("an unknown lease is ignored, but believed while rebuilding") {
  ledger books(job_of(consistency_mode::asp, 100), {});
  const lease old{77, {10}, 5, 1};
  CHECK_FALSE(books.progress(w0, {{old, {batch_id{10}}}}, false));
  CHECK(books.cursor() == batch_id{0});
  CHECK(books.progress(w0, {{old, {batch_id{10}}}}, true));
  CHECK(books.cursor() == batch_id{15});
  CHECK(books.leases_of(w0) == std::vector{old});
  CHECK(books.remaining() == 100 - 5); // 0..9 are queued, 10 is finished, 11..14 leased.
}

TEST_CASE("a believed lease never overlaps another worker's open batches") {
  ledger books(job_of(consistency_mode::asp, 100), {});
  const lease first{7, {10}, 5, 1};
  const lease second{8, {13}, 5, 1};
  books.progress(w0, {{first, {}}}, true);
  CHECK_FALSE(books.progress(w1, {{second, {batch_id{16}}}}, true));
  CHECK(books.leases_of(w1).empty());
  CHECK_FALSE(books.progress(w1, {{{7, {30}, 2, 1}, {}}}, true)); // The lease's number is taken.
  books.progress(w1, {{{9, {13}, 2, 1}, {batch_id{13}, batch_id{14}}}}, true); // Both are done.
  CHECK(books.leases_of(w1).empty());
  CHECK(held_by(books, w0) == std::set<std::uint64_t>{10, 11, 12, 13, 14});
}

TEST_CASE("a lease that is not one of this job is not believed") {
  ledger books(job_of(consistency_mode::asp, 100), {});
  for (const auto& bad : {lease{1, {0}, 0, 1}, lease{1, {0}, 4, 0}, lease{1, {100}, 1, 1},
                          lease{1, {90}, 11, 1}, lease{1, {0}, 0xffffffff, 0xffffffff}})
    CHECK_FALSE(books.progress(w0, {{bad, {}}}, true));
  CHECK(books.cursor() == batch_id{0});
}

TEST_CASE("an audit queues batches that are applied no more, whether settled or finished") {
  ledger books(job_of(consistency_mode::asp, 20), {5, 1});
  std::uint64_t next = 1;
  books.hand_out({w0, w1}, next);
  finish_all(books, w0);
  finish_all(books, w1);
  books.settle(batch_set(batch_id{5}));
  CHECK(books.settled() == 5);
  CHECK(books.audit(batch_set(batch_id{2}), audit_trust::none) == books.cursor().value - 2);
  CHECK(books.settled() == 2);
  CHECK(books.remaining() == 18);
  CHECK(books.audit(batch_set(batch_id{2}), audit_trust::none) == 0);
}

TEST_CASE("an audit that trusts leaves a finished batch alone once, not twice") {
  ledger books(job_of(consistency_mode::asp, 10), {5, 1});
  std::uint64_t next = 1;
  books.hand_out({w0}, next);
  finish_all(books, w0);
  CHECK(books.audit({}, audit_trust::once) == 0);
  CHECK(books.audit({}, audit_trust::once) == 5);
  CHECK(books.audit({}, audit_trust::once) == 0);
}

TEST_CASE("an audit that trusts the living queues the batches of a worker after its death") {
  ledger books(job_of(consistency_mode::asp, 10), {5, 1});
  std::uint64_t next = 1;
  books.hand_out({w0, w1}, next);
  finish_all(books, w0);
  finish_all(books, w1);
  for (int i = 0; i < 3; ++i)
    CHECK(books.audit({}, audit_trust::living) == 0);
  books.lost(w0);
  CHECK(books.audit({}, audit_trust::living) == 0); // Its last copy may be on the way.
  const auto all = books.cursor().value, lost = books.audit({}, audit_trust::living);
  CHECK(lost > 0);
  CHECK(lost < all);
  CHECK(books.audit({}, audit_trust::living) == 0);
  CHECK(books.audit({}, audit_trust::once) == all - lost);
}

TEST_CASE("a ledger that trusts copies gives out unknown batches of an earlier term after audits") {
  ledger books(job_of(consistency_mode::asp, 20), {5, 1, true});
  books.settle(batch_set(batch_id{3}));
  batch_set applied(batch_id{3});
  applied.insert({9});
  books.settle(applied); // 3 to 8 are unknown.
  CHECK(books.remaining() == 10);
  CHECK(books.audit(applied, audit_trust::living) == 0);
  applied.insert({4}); // A copy came.
  CHECK(books.audit(applied, audit_trust::living) == 5);
  CHECK(books.remaining() == 15);
}

TEST_CASE("an open batch that is applied no more stays with its holder") {
  ledger books(job_of(consistency_mode::asp, 10), {5, 1});
  std::uint64_t next = 1;
  books.hand_out({w0}, next);
  books.settle(batch_set(batch_id{3})); // The batches were pushed, but not yet reported done.
  CHECK(books.audit({}, audit_trust::none) == 0);
  CHECK(held_by(books, w0).size() == 5);
  books.settle(batch_set(batch_id{3}));
  books.lost(w0);
  CHECK(books.remaining() == 7); // The three settled batches are not done again.
}

TEST_CASE("applied batches beyond the cursor raise it, and what they skip is queued") {
  ledger books(job_of(consistency_mode::asp, 100), {});
  batch_set applied(batch_id{4});
  applied.insert({9});
  books.settle(applied);
  CHECK(books.cursor() == batch_id{10});
  CHECK(books.remaining() == 90 + 5);
}

TEST_CASE("after a roll back only applied batches are done and nobody holds anything") {
  ledger books(job_of(consistency_mode::bsp, 40), {4, 2});
  std::uint64_t next = 1;
  books.hand_out({w0, w1}, next);
  finish_all(books, w0);
  books.roll_back(batch_set(batch_id{8}));
  CHECK_FALSE(books.holds_work(w0));
  CHECK_FALSE(books.holds_work(w1));
  CHECK(books.cursor() == batch_id{8});
  CHECK(books.settled() == 8);
  CHECK(books.remaining() == 32);
}

TEST_CASE("bsp gives out whole groups: every slot of a clock, one lease a slot, within a pass") {
  ledger books(job_of(consistency_mode::bsp, 25, 2, 4), {4, 1});
  std::uint64_t next = 1;
  books.hand_out({w0, w1}, next);
  CHECK(books.cursor() == batch_id{16}); // 4 clocks of 4 slots.
  CHECK(books.leases_of(w0).size() == 2);
  CHECK(books.leases_of(w0).front() == lease{1, {0}, 4, 4});
  CHECK(books.leases_of(w1).front() == lease{2, {1}, 4, 4});
  finish_all(books, w0);
  books.hand_out({w0, w1}, next);
  CHECK(books.cursor() == batch_id{25}); // The pass ends in the middle of a clock.
  std::set<std::uint64_t> held = held_by(books, w0);
  held.merge(held_by(books, w1));
  for (std::uint64_t batch = 16; batch < 25; ++batch)
    CHECK(held.contains(batch));
  CHECK_FALSE(held.contains(25));
}

TEST_CASE("bsp gives everyone a slot before anyone has two, however much each has to do") {
  ledger books(job_of(consistency_mode::bsp, 400, 1, 3), {4, 2});
  std::uint64_t next = 1;
  books.hand_out({w0, w1, w2}, next);
  finish_all(books, w1); // A spare did all of it.
  books.hand_out({w0, w1, w2}, next);
  CHECK(books.leases_of(w0).size() == 4);
  CHECK(books.leases_of(w1).size() == 2);
  CHECK(books.leases_of(w2).size() == 4);
}

TEST_CASE("bsp gives out all that is queued at once, or someone would wait for ever") {
  ledger books(job_of(consistency_mode::bsp, 400, 1, 4), {16, 2});
  std::uint64_t next = 1;
  books.hand_out({w0, w1}, next);
  const auto held = held_by(books, w0);
  books.lost(w0);
  books.hand_out({w1}, next);
  CHECK(books.leases_of(w1).size() > 4);
  for (const auto batch : held)
    CHECK(held_by(books, w1).contains(batch));
}

TEST_CASE("a believed lease leaves the cursor of a bsp job at the end of a clock") {
  ledger books(job_of(consistency_mode::bsp, 40, 1, 4), {4, 2});
  books.progress(w0, {{{9, {1}, 3, 4}, {}}}, true); // Batches 1, 5, 9.
  CHECK(books.cursor() == batch_id{12});
}

TEST_CASE("random events keep the invariants, and all work is done in the end") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    std::mt19937_64 random(seed);
    const auto pick = [&](std::uint64_t low, std::uint64_t high) {
      return std::uniform_int_distribution<std::uint64_t>(low, high)(random);
    };
    const auto mode = seed % 2 == 0 ? consistency_mode::bsp : consistency_mode::asp;
    const auto job = job_of(mode, pick(1, 90), pick(1, 3), static_cast<std::uint32_t>(pick(1, 4)));
    ledger books(job, {static_cast<std::uint32_t>(pick(1, 12)), 2});
    std::uint64_t next = 1;
    batch_set applied;
    std::set<std::uint64_t> ids;
    int steps = 0;
    for (; !books.complete(); ++steps) {
      REQUIRE(steps < 20'000);
      const worker_id worker{static_cast<std::uint32_t>(pick(0, 2))};
      const auto event = pick(0, 99);
      if (event < 40) {
        const auto before = next;
        books.hand_out({w0, w1, w2}, next);
        for (auto id = before; id < next; ++id)
          REQUIRE(ids.insert(id).second);
      } else if (event < 90 && books.holds_work(worker)) {
        const auto one = books.leases_of(worker).front();
        std::vector<batch_id> done;
        for (const auto batch : batches_of(one)) {
          if (pick(0, 1) == 0) {
            done.push_back(batch);
            applied.insert(batch);
          }
        }
        books.progress(worker, {{one, done}}, false);
      } else if (event < 94) {
        books.lost(worker);
      } else if (event < 97) {
        books.settle(applied);
      } else if (event < 98 && steps < 500) {
        applied = batch_set(batch_id{pick(0, applied.floor().value)});
        books.audit(applied, audit_trust::none);
      } else {
        books.audit(applied, pick(0, 1) == 0 ? audit_trust::once : audit_trust::none);
      }
      REQUIRE(books.cursor().value <= job.batches());
    }
    CHECK(applied == batch_set(batch_id{job.batches()}));
  }
}

TEST_CASE("a relieved worker keeps its next batch, in bsp its oldest lease") {
  for (const bool bsp : {false, true}) {
    const auto mode = bsp ? consistency_mode::bsp : consistency_mode::asp;
    ledger books(job_of(mode, 1000), {8, 2});
    std::uint64_t next = 1;
    books.hand_out({w0, w1}, next);
    const auto oldest = books.leases_of(w0).front();
    books.progress(w0, {{oldest, {oldest.at(0), oldest.at(1)}}}, false);
    const auto before = books.remaining();
    CHECK(books.take_leases(w0));
    REQUIRE(books.leases_of(w0).size() == 1);
    const auto kept = books.leases_of(w0).front();
    CHECK(kept == lease{oldest.id, oldest.first, bsp ? 8u : 3u, oldest.stride});
    CHECK(books.remaining() - before == (bsp ? 8 : 13));
    CHECK_FALSE(books.take_leases(w0));
    CHECK(books.progress(w0, {{oldest, batches_of(oldest)}}, false)); // Sent before the relief.
    CHECK_FALSE(books.holds_work(w0));
  }
}

TEST_CASE("who holds most for its pace is overloaded, until it keeps only what it has begun") {
  for (const bool bsp : {false, true}) {
    ledger books(job_of(bsp ? consistency_mode::bsp : consistency_mode::asp, 64), {8, 2});
    std::uint64_t next = 1;
    books.hand_out({w0, w1}, next);
    const std::map<worker_id, std::uint32_t> pace{{w0, 4}, {w1, 8}};
    CHECK(books.overloaded(pace) == (bsp ? w1 : w0)); // bsp ignores the pace.
    finish_all(books, w0);
    CHECK(books.overloaded(pace) == w1);
    REQUIRE(books.take_leases(w1));
    CHECK_FALSE(books.overloaded(pace));
    books.hand_out({w2}, next);
    CHECK(books.overloaded(pace) == w2);
    books.lost(w2);
    CHECK_FALSE(books.overloaded(pace));
  }
}

TEST_CASE("a copy is no load") {
  ledger books(job_of(consistency_mode::asp, 64), {8, 1});
  std::uint64_t next = 1;
  books.hand_out({w0}, next);
  REQUIRE(books.copy(w0, w1, next, 8));
  CHECK(books.overloaded({{w0, 8}, {w1, 1}}) == std::nullopt);
  CHECK(books.overloaded({{w0, 7}, {w1, 1}}) == w0);
}

TEST_CASE("a copy: who reports a batch first has done it, and the other's lease gets shorter") {
  ledger books(job_of(consistency_mode::bsp, 64), {8, 1});
  std::uint64_t next = 1;
  books.hand_out({w0, w1}, next);
  const auto own = books.leases_of(w0).front();
  REQUIRE(own.count == 8);
  books.progress(w0, {{own, {own.at(0)}}}, false);
  REQUIRE(books.copy(w0, w2, next, 16));
  CHECK(books.copied_by(w2) == w0);
  CHECK_FALSE(books.copy(w0, w2, next, 16)); // w2 has the copy already.
  const auto copy = books.leases_of(w2).front();
  CHECK(batches_of(copy) == [&] {
    auto rest = batches_of(own);
    rest.erase(rest.begin());
    return rest;
  }());
  books.progress(w2, {{copy, {copy.at(0), copy.at(1)}}}, false);
  CHECK(books.take_shortened() == std::set{w0});
  CHECK(books.take_shortened().empty());
  CHECK(books.leases_of(w0).front() == lease{own.id, own.at(3), 5, own.stride});
  CHECK(books.acknowledged().contains(copy.at(1)));
  // The holder does the rest, so the copy is of no more use.
  CHECK(books.progress(w0, {{own, batches_of(own)}}, false));
  CHECK_FALSE(books.holds_work(w0));
  CHECK_FALSE(books.copied_by(w2));
  CHECK_FALSE(books.copy(w0, w2, next, 16));
}

TEST_CASE("a copy that is done first ends the lease; a lost copy leaves nothing") {
  ledger books(job_of(consistency_mode::bsp, 64), {8, 1});
  std::uint64_t next = 1;
  books.hand_out({w0, w1}, next);
  const auto remaining = books.remaining();
  REQUIRE(books.copy(w0, w2, next, 16));
  books.lost(w2);
  CHECK(books.remaining() == remaining);
  REQUIRE(books.copy(w0, w2, next, 16));
  finish_all(books, w2);
  CHECK_FALSE(books.holds_work(w0));
  CHECK_FALSE(books.holds_work(w2));
  CHECK(books.take_shortened() == std::set{w0});
  CHECK(books.remaining() == remaining);
}

TEST_CASE("what was copied from a lost worker counts wherever it went since") {
  ledger books(job_of(consistency_mode::bsp, 64), {8, 1});
  std::uint64_t next = 1;
  books.hand_out({w0, w1}, next);
  REQUIRE(books.copy(w0, w2, next, 16));
  const auto copy = books.leases_of(w2).front();
  books.lost(w0);
  books.progress(w2, {{copy, {copy.at(0)}}}, false); // The batch is queued.
  books.hand_out({w1}, next);
  CHECK_FALSE(held_by(books, w1).contains(copy.at(0).value));
  REQUIRE(held_by(books, w1).contains(copy.at(1).value));
  books.progress(w2, {{copy, {copy.at(0), copy.at(1)}}}, false); // w1 holds the second batch.
  CHECK_FALSE(held_by(books, w1).contains(copy.at(1).value));
}

TEST_CASE("who gets work of its own loses its copy") {
  ledger books(job_of(consistency_mode::asp, 64), {8, 1});
  std::uint64_t next = 1;
  books.hand_out({w0}, next);
  REQUIRE(books.copy(w0, w1, next, 1));
  CHECK(held_by(books, w1) == std::set{books.leases_of(w0).front().first.value});
  CHECK(books.hand_out({w0, w1}, next) == std::set{w1});
  CHECK_FALSE(books.copied_by(w1));
  CHECK(books.owns_work(w1));
  CHECK_FALSE(held_by(books, w1).contains(books.leases_of(w0).front().first.value));
}

} // namespace
} // namespace troupe::ledger_test
