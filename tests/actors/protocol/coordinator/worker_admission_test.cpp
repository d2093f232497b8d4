#include "actors/protocol/coordinator/worker_admission.hpp"

#include "tests/actors/coordinator_fixture.hpp"

namespace troupe::worker_admission_test {
namespace {

struct fixture {
  fixture() {
    for (auto& shard : shards)
      shard.serving = true;
  }

  void join(std::uint32_t index) {
    status_message what;
    what.from = id_of(index);
    what.sequence = 1;
    what.body = worker_status{};
    members.hear(what, now);
    workers.on_join({index}, "", now);
  }

  static member_id id_of(std::uint32_t index) { return {role::worker, index, {100 + index}}; }

  /// The head of the shard reports that it knows the worker.
  void promise(std::size_t shard, std::uint32_t index, std::uint64_t clock) {
    shards[shard].report.clocks.push_back({{index}, id_of(index).incarnation, clock, true});
  }

  void admit(std::uint32_t index) {
    join(index);
    decide();
    promise(0, index, 0);
    promise(1, index, 0);
    decide();
  }

  void decide(bool may_work = true) {
    workers.decide({members, shards, {}, false, may_work, time_point{0}, now});
  }

  const worker_state& worker(std::uint32_t index) const { return workers.all().at(index); }

  time_point now{10s};
  job_spec job = job_of_mode(consistency_mode::asp);
  membership members;
  std::vector<shard_state> shards{2};
  worker_admission workers{job, {}, 100ms, std::nullopt, 3};
};

TEST_CASE_FIXTURE(fixture, "a worker gets a lease when all shards have promised it a clock") {
  join(0);
  decide();
  CHECK(worker(0).stage == admission_stage::candidate);
  promise(0, 0, 7);
  decide();
  CHECK(worker(0).stage == admission_stage::candidate);
  CHECK(workers.take_outdated().empty());
  promise(1, 0, 9);
  decide();
  CHECK(worker(0).stage == admission_stage::admitted);
  CHECK(worker(0).start_clock == 9);
  CHECK(workers.take_outdated() == std::set<worker_id>{{0}});
  const auto& leases = workers.batches().leases_of({0});
  REQUIRE_FALSE(leases.empty());
  CHECK((leases.front().id >> 32) == 3); // Ids begin with the term.
}

TEST_CASE_FIXTURE(fixture, "a worker without work leaves the clock vectors") {
  join(0);
  decide();
  CHECK(worker(0).stage == admission_stage::candidate);
  promise(0, 0, 0);
  decide(false);
  CHECK(worker(0).stage == admission_stage::leaving);
  decide(false);
  CHECK(worker(0).stage == admission_stage::leaving); // A shard still lists it.
  shards[0].report.clocks.clear();
  const auto roster = workers.roster();
  decide(false);
  CHECK(worker(0).stage == admission_stage::out);
  CHECK(workers.roster() > roster);
}

TEST_CASE_FIXTURE(fixture, "the batches of a lost worker are queued again") {
  admit(0);
  const auto held = job.batches() - workers.batches().remaining();
  REQUIRE(held > 0);
  CHECK(workers.on_lost({0}, now) == held);
  CHECK(workers.all().empty());
}

TEST_CASE_FIXTURE(fixture, "bsp: a worker that comes takes over clocks that others hold already") {
  workers = {job_of_mode(consistency_mode::bsp, 2, 2, 256), {}, 100ms, std::nullopt, 3};
  admit(0);
  REQUIRE(workers.batches().remaining() > 0);
  admit(1);
  const auto& leases = workers.batches().leases_of({1});
  REQUIRE_FALSE(leases.empty());
  CHECK(leases.front().first == batch_id{1}); // The second slot of the first clock.
}

TEST_CASE_FIXTURE(fixture, "a demoted worker loses its batches, an evicted one has to end") {
  admit(0);
  REQUIRE(workers.batches().holds_work({0}));
  straggler_event event;
  event.worker = worker_id{0};
  event.measure = straggler_measure::demoted;
  CHECK_FALSE(workers.carry_out(event));
  CHECK_FALSE(workers.batches().holds_work({0}));
  event.measure = straggler_measure::evicted;
  CHECK(workers.carry_out(event));
  CHECK_FALSE(workers.carry_out(event)); // It was carried out before.
}

} // namespace
} // namespace troupe::worker_admission_test
