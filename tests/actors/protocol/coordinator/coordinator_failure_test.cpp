// Tests how the coordinator reacts to lost members, and how a new coordinator takes over.
#include "actors/protocol/clock_table.hpp"
#include "tests/actors/coordinator_fixture.hpp"

namespace troupe::coordinator_failure_test {
namespace {

using namespace std::chrono_literals;

// -- deaths -------------------------------------------------------------------------------------

TEST_CASE(
  "a lost worker's batches go to others at once, and its late reports are answered with stop") {
  coordinator_fixture one(job_of_mode(consistency_mode::asp, 2, 2, 1000));
  one.train();
  std::uint64_t held = 0;
  for (const auto& x : one.desired_of(0, 200).leases)
    held += x.count;
  one.death(role::worker, 0, 200);
  CHECK(
    one.told(event_kind::worker_lost, {{"member", "worker 0"}, {"batches", std::to_string(held)}}));
  CHECK(one.desired_of_server(0, 100).workers.size() == 1);
  one.worker(0, 200);
  CHECK(one.all_desired(role::worker, 0, 200).stop);
  CHECK_FALSE(one.all_desired(role::worker, 0, 200).failed);
  one.worker(0, 202);
  CHECK(one.told(event_kind::member_rejoined, {{"member", "worker 0"}}));
  CHECK_FALSE(one.all_desired(role::worker, 0, 202).stop);
}

TEST_CASE("a second live worker of an index is refused") {
  coordinator_fixture one(job_of_mode(consistency_mode::asp));
  one.train();
  for (int i = 0; i < 8; ++i) {
    one.now += 100ms;
    one.worker(1, 201);
    one.worker(1, 333);
  }
  CHECK(one.all_desired(role::worker, 1, 333).stop);
  CHECK(one.all_desired(role::worker, 1, 333).failed.value().text
        == "worker 1 is already running elsewhere");
  CHECK_FALSE(one.all_desired(role::worker, 1, 201).stop);
}

TEST_CASE("silence kills after the liveness timeout, a broken connection alone does not") {
  coordinator_fixture one(job_of_mode(consistency_mode::asp));
  one.train();
  coordinator_effects effects;
  one.boss->disconnected({role::worker, 0, {200}}, one.now, effects);
  for (int i = 0; i < 49; ++i) {
    one.tick(100ms);
    one.server(0, 100);
  }
  CHECK_FALSE(one.told_loss());
  one.worker(1, 201);
  one.tick(200ms);
  CHECK(one.told(event_kind::worker_lost, {{"member", "worker 0"}}));
  CHECK(one.told(event_kind::server_lost, {{"member", "server 1"}}));
  CHECK(one.told(event_kind::server_lost, {{"reason", "silent for 5000 ms"}}));
  CHECK_FALSE(one.told(event_kind::worker_lost, {{"member", "worker 1"}}));
}

TEST_CASE("a launcher that was silent goes on where it was") {
  coordinator_fixture one(job_of_mode(consistency_mode::asp));
  one.train();
  for (int i = 0; i < 60; ++i) {
    one.tick(100ms);
    one.server(0, 100);
    one.server(1, 101);
    one.worker(0, 200);
    one.worker(1, 201);
  }
  one.observer();
  CHECK_FALSE(one.all_desired(role::observer, 0, 900).stop);
  CHECK_FALSE(one.told_loss());
}

TEST_CASE("nobody is dead because the coordinator itself slept") {
  coordinator_fixture one(job_of_mode(consistency_mode::asp));
  one.train();
  one.tick(60s);
  CHECK_FALSE(one.told_loss());
}

// -- lost servers -------------------------------------------------------------------------------

TEST_CASE("asp: only the lost chain goes back, what it lacks is done again") {
  coordinator_fixture one(job_of_mode(consistency_mode::asp, 2, 2, 1000));
  one.train();
  one.server(0, 100, 20);
  one.server(1, 101, 20);
  const auto other = one.record(1);
  const auto before = one.record(0).active.generation;
  one.death(role::server, 0, 100);
  CHECK(one.finds == 1);
  one.server(0, 110);
  CHECK(one.chains_of(0, 110).empty());
  one.found(3);
  CHECK(one.record_of(0, 110).base_checkpoint == 3);
  CHECK(one.text_of(0) == "0.100, then 0.110");
  CHECK_FALSE(one.desired_of(0, 200).view.chains[0].serving);
  CHECK_FALSE(one.desired_of(0, 200).leases.empty());
  const auto config = one.desired_of(0, 200).view.config;
  one.server(0, 110, 15); // The server has sealed and loaded ...
  one.server(0, 110, 15); // ... and acts in the active configuration.
  CHECK(one.text_of(0) == "0.110");
  CHECK(one.record(0).active.generation > before);
  CHECK(one.desired_of(0, 200).view.chains[0].serving);
  CHECK(one.desired_of(0, 200).view.config > config);
  CHECK(one.desired_of(0, 200).view.generation == generation_id{0});
  CHECK(one.record(1) == other);
  CHECK(
    one.told(event_kind::shard_restored, {{"shard", "0"}, {"checkpoint", "3"}, {"updates", "5"}}));
}

TEST_CASE("asp without a checkpoint: the lost chain starts over") {
  coordinator_fixture one(job_of_mode(consistency_mode::asp));
  one.train();
  one.death(role::server, 0, 100);
  one.server(0, 110);
  one.found(std::nullopt);
  CHECK(one.record_of(0, 110).base_checkpoint == 0);
  one.serve({{0, 110}});
  CHECK(one.told(event_kind::shard_restarted, {{"shard", "0"}, {"updates", "0"}}));
}

TEST_CASE("bsp: all chains go back together, in a persisted generation, without leases meanwhile") {
  coordinator_fixture one(job_of_mode(consistency_mode::bsp, 2, 2, 200));
  one.train();
  one.server(0, 100, 20);
  one.server(1, 101, 20);
  const auto old = one.desired_of(0, 200).leases.front();
  one.death(role::server, 0, 100);
  CHECK(one.persisted.back().generation == generation_id{1});
  CHECK(one.persisted.back().rolling_back);
  CHECK(one.desired_of(0, 200).leases.empty());
  CHECK(one.desired_of(0, 200).view.generation == generation_id{1});
  one.found(3);
  CHECK(one.record_of(1, 101).base_checkpoint == 3);
  CHECK(one.text_of(1) == "1.101, then 1.101");
  one.serve({{1, 101}}, 12);
  CHECK(one.text_of(1) == "1.101");
  CHECK(one.desired_of(0, 200).leases.empty());
  one.server(0, 110);
  CHECK(one.record_of(0, 110).base_checkpoint == 3);
  one.serve({{0, 110}}, 12);
  CHECK_FALSE(one.persisted.back().rolling_back);
  CHECK(
    one.told(event_kind::shard_restored, {{"shard", "0"}, {"checkpoint", "3"}, {"updates", "8"}}));
  CHECK(one.told(event_kind::all_rolled_back, {{"clock", "6"}, {"generation", "1"}}));
  REQUIRE_FALSE(one.desired_of(0, 200).leases.empty());
  CHECK(one.desired_of(0, 200).leases.front().first == batch_id{12});
  CHECK(one.desired_of(0, 200).leases.front().id > old.id);
}

TEST_CASE("a server that is heard and does nothing for its chain is told of it again and again") {
  coordinator_fixture one(job_of_mode(consistency_mode::asp));
  one.train();
  const auto before = one.record(0);
  for (int i = 0; i < 100; ++i) {
    one.tick(100ms);
    one.receive({role::server, 0, {100}}, server_status{});
    one.server(1, 101);
    one.worker(0, 200);
    one.worker(1, 201);
  }
  CHECK_FALSE(one.told_loss());
  CHECK(one.record(0) == before); // Nobody else has what it had.
  CHECK(one.chains_of(0, 100) == std::vector<desired_chain>{{{0}, before}});
  CHECK(one.sent[member_id{role::server, 0, {100}}] > 90);
}

// -- no checkpoint to go back to ----------------------------------------------------------------

TEST_CASE("a search for checkpoints that fails for a while is repeated, and told of once") {
  coordinator_options how;
  how.resume = true;
  for (const auto code : {errc::io_failed, errc::timed_out, errc::peer_lost}) {
    coordinator_fixture one(job_of_mode(consistency_mode::asp), how);
    one.server(0, 100);
    one.server(1, 101);
    for (int i = 1; i <= 3; ++i) {
      one.search_failed({code, "the disk is asleep"});
      one.tick(900ms);
      CHECK(one.finds == i);
      one.tick(100ms);
      CHECK(one.finds == i + 1);
    }
    CHECK(one.times_told(event_kind::checkpoint_search_failed,
                         {{"reason", "cannot look for checkpoints: the disk is asleep"}})
          == 1);
    CHECK(one.chains_of(0, 100).empty());
    one.server(0, 100); // Otherwise the servers would be silent by now.
    one.server(1, 101);
    one.found(7);
    one.tick(2000ms);
    CHECK(one.finds == 4);
    CHECK(one.record_of(0, 100).base_checkpoint == 7);
  }
}

TEST_CASE("a search that cannot succeed fails the job") {
  coordinator_options how;
  how.resume = true;
  coordinator_fixture one(job_of_mode(consistency_mode::asp), how);
  one.server(0, 100);
  one.search_failed({errc::wrong_job, "of another job"});
  CHECK(one.boss->phase() == job_phase::stopped);
  CHECK(one.all_desired(role::server, 0, 100).stop);
  CHECK(
    one.told(event_kind::job_failed, {{"reason", "cannot look for checkpoints: of another job"}}));
  one.tick(2000ms);
  CHECK(one.finds == 1);
}

TEST_CASE("if all checkpoints are damaged the job fails rather than start over") {
  coordinator_options how;
  how.resume = true;
  coordinator_fixture one(job_of_mode(consistency_mode::asp), how);
  one.found(std::nullopt, {{errc::damaged, "checkpoint 3 is damaged"}});
  CHECK(one.boss->phase() == job_phase::stopped);
  CHECK(one.told(event_kind::job_failed,
                 {{"reason", "no checkpoint can be restored, and a restart would discard the "
                             "training so far: checkpoint 3 is damaged"}}));

  coordinator_fixture two(job_of_mode(consistency_mode::asp), how);
  two.found(3);
  two.train();
  two.death(role::server, 0, 100);
  two.found(std::nullopt, {{errc::io_failed, "checkpoint 3 is unreadable"}});
  CHECK(two.boss->phase() == job_phase::stopped);
}

TEST_CASE("a committed checkpoint is remembered by the next coordinator, which never starts over") {
  const auto job = job_of_mode(consistency_mode::asp, 2, 2, 1000);
  coordinator_options how;
  how.checkpointing.interval = 100ms;
  coordinator_fixture before(job, how);
  before.train();
  before.server(0, 100, 5);
  before.server(1, 101, 5);
  before.tick(100ms);
  before.part(0, 100, 5);
  before.part(1, 101, 5);
  before.committed(1);
  const auto restarted = [&](std::vector<failure> refused) {
    coordinator_fixture one(job, how, state_of(before));
    one.server(0, 110); // All servers and the coordinator are new.
    one.server(1, 111);
    one.tick(4000ms); // The coordinator waits for workers first.
    one.tick();
    one.found(std::nullopt, std::move(refused));
    CHECK(one.boss->phase() == job_phase::stopped);
    return one.all_desired(role::server, 0, 110).failed.value().text;
  };
  const std::string why =
    "no checkpoint can be restored, and a restart would discard the training so far: ";
  CHECK(restarted({}) == why + "checkpoint 1 is gone");
  CHECK(restarted({{errc::io_failed, "checkpoint 1 has no COMMIT"}, {errc::io_failed, "and 0"}})
        == why + "checkpoint 1 has no COMMIT; and 0");
}

TEST_CASE("a job that never committed a checkpoint starts from the beginning after a restart") {
  const auto job = job_of_mode(consistency_mode::asp);
  coordinator_fixture before(job);
  coordinator_fixture one(job, {}, state_of(before));
  one.server(0, 110);
  one.server(1, 111);
  one.tick(4000ms);
  one.found(std::nullopt);
  CHECK(one.told(event_kind::no_checkpoint));
  one.serve({{0, 110}, {1, 111}});
  CHECK(one.text_of(0) == "0.110");
  CHECK(one.record_of(0, 110).base_checkpoint == 0);
}

TEST_CASE("for a checkpoint that a server cannot read an older one is taken, and that is told") {
  for (const auto mode : {consistency_mode::asp, consistency_mode::bsp}) {
    const bool together = mode == consistency_mode::bsp;
    coordinator_options how;
    how.resume = true;
    coordinator_fixture one(job_of_mode(mode), how);
    one.found(12);
    one.server(0, 100);
    one.server(1, 101);
    one.serve({{1, 101}}, 4); // Server 1 could read the checkpoint.
    REQUIRE(one.record_of(0, 100).base_checkpoint == 12);
    const auto unreadable = one.unreadable(0, 100, 12, "checkpoint 12 is damaged: block 3");
    one.receive({role::server, 0, {100}}, unreadable);
    CHECK(one.boss->phase() == job_phase::gathering);
    CHECK(one.told(event_kind::restore_failed,
                   {{"member", "server 0"}, {"reason", "checkpoint 12 is damaged: block 3"}}));
    CHECK(one.finds == 2);
    CHECK(one.passed_over == std::vector<std::uint64_t>{12});
    one.found(11, {{errc::damaged, "checkpoint 12 is damaged: a server could not read it"}});
    // The server wrote this before it got the new desired state.
    one.receive({role::server, 0, {100}}, unreadable);
    CHECK(one.finds == 2);
    CHECK(one.record_of(0, 100).base_checkpoint == 11);
    CHECK(one.record_of(1, 101).base_checkpoint == (together ? 11 : 12));
    for (int i = 0; i < 4; ++i) {
      one.server(0, 100, 2);
      one.server(1, 101, together ? 2 : 4);
      one.worker(0, 200);
      one.worker(1, 201);
    }
    CHECK(one.boss->phase() == job_phase::training);
  }
}

TEST_CASE("a checkpoint that a server could not read meanwhile is looked for again") {
  coordinator_options how;
  how.resume = true;
  coordinator_fixture one(job_of_mode(consistency_mode::asp), how);
  one.found(12);
  one.server(0, 100);
  one.server(1, 101);
  one.receive({role::server, 0, {100}}, one.unreadable(0, 100, 12, "checkpoint 12 is damaged"));
  REQUIRE(one.finds == 2);
  one.found(11);
  REQUIRE(one.record_of(0, 100).base_checkpoint == 11);
  one.receive({role::server, 0, {100}}, one.unreadable(0, 100, 11, "checkpoint 11 is damaged"));
  REQUIRE(one.finds == 3);
  one.found(11); // This search had begun before the report.
  CHECK(one.finds == 4);
  CHECK(one.passed_over == std::vector<std::uint64_t>{12, 11});
  one.found(10);
  CHECK(one.record_of(0, 100).base_checkpoint == 10);
}

TEST_CASE("the job fails where servers can read none of the checkpoints") {
  coordinator_options how;
  how.resume = true;
  coordinator_fixture one(job_of_mode(consistency_mode::asp), how);
  one.found(12);
  one.server(0, 100);
  one.receive({role::server, 0, {100}}, one.unreadable(0, 100, 12, "checkpoint 12 is damaged"));
  one.found(std::nullopt, {{errc::damaged, "checkpoint 12 is damaged"}});
  CHECK(one.all_desired(role::server, 0, 100)
          .failed.value()
          .text.ends_with(": checkpoint 12 is damaged"));
}

TEST_CASE("where nothing was ever committed the job starts over") {
  coordinator_options how;
  how.resume = true;
  coordinator_fixture one(job_of_mode(consistency_mode::asp), how);
  one.found(std::nullopt, {{errc::io_failed, "checkpoint 1 has no COMMIT"}});
  CHECK(one.told(event_kind::no_checkpoint));
  one.train();
}

// -- a new coordinator --------------------------------------------------------------------------

TEST_CASE(
  "a restarted coordinator believes running servers and leases, and desires nothing before") {
  coordinator_fixture before(job_of_mode(consistency_mode::asp, 2, 2, 1000));
  before.train();
  coordinator_fixture after(before.job, {}, state_of(before));
  const auto report_server = [&](std::uint32_t index) {
    const member_id who{role::server, index, {100 + index}};
    auto body = before.reconciled_status(who, 4);
    for (auto& entry : body.chains.at(0).clocks)
      entry.clock = 3;
    after.receive(who, body);
  };
  const auto report_worker = [&](std::uint32_t index) {
    worker_status body;
    body.clock = 3;
    for (const auto& x : before.desired_of(index, 200 + index).leases)
      body.leases.push_back({x, {}});
    after.worker(index, 200 + index, body);
  };
  report_server(0);
  report_server(1);
  report_worker(0);
  CHECK(after.last.empty());
  CHECK(after.boss->phase() == job_phase::gathering);
  report_worker(1);
  CHECK(after.boss->phase() == job_phase::training);
  CHECK(after.finds == 0);
  CHECK(after.chains_of(0, 100) == before.chains_of(0, 100));
  CHECK(after.persisted.back().chains == before.persisted.back().chains);
  CHECK(after.desired_of(0, 200).admitted);
  // The worker may have pushes that are not applied, so servers learn its clock from the worker.
  const auto told = std::get<desired_server>(after.all_desired(role::server, 0, 100).body);
  CHECK(std::ranges::all_of(told.workers, [](const auto& x) { return x.known && x.clock == 0; }));
  CHECK(after.desired_of(0, 200).view.chains[0].serving);
  CHECK(after.desired_of(0, 200).view.config > before.desired_of(0, 200).view.config);
  const auto& mine = after.desired_of(0, 200).leases;
  const auto& old = before.desired_of(0, 200).leases;
  REQUIRE(mine.size() >= old.size());
  CHECK(std::equal(old.begin(), old.end(), mine.begin()));
}

TEST_CASE("who was a backup by the coordinator before is admitted again, with a clock of its own") {
  coordinator_fixture before(job_of_mode(consistency_mode::ssp, 1, 2, 1000));
  for (int i = 0; i < 5; ++i) {
    before.server(0, 100);
    before.worker(0, 200);
    before.worker(1, 201);
  }
  for (const bool is_unbound : {false, true}) {
    coordinator_fixture after(before.job, {}, state_of(before));
    auto body = before.reconciled_status({role::server, 0, {100}}, 4);
    if (is_unbound)
      body.chains.at(0).clocks.at(0).clock = unbound_clock;
    after.receive({role::server, 0, {100}}, body);
    for (const std::uint32_t index : {0U, 1U}) {
      worker_status mine;
      for (const auto& x : before.desired_of(index, 200 + index).leases)
        mine.leases.push_back({x, {}});
      REQUIRE_FALSE(mine.leases.empty());
      after.worker(index, 200 + index, mine);
    }
    CHECK(after.desired_of(0, 200).admitted == !is_unbound);
    CHECK(after.desired_of(1, 201).admitted);
  }
}

TEST_CASE("after recovery_timeout absence counts: what an absent worker held is done again") {
  coordinator_fixture before(job_of_mode(consistency_mode::asp, 1, 2, 1000));
  for (int i = 0; i < 5; ++i) {
    before.server(0, 100);
    before.worker(0, 200);
    before.worker(1, 201);
  }
  REQUIRE_FALSE(before.desired_of(1, 201).leases.empty());
  coordinator_fixture after(before.job, {}, state_of(before));
  worker_status mine;
  for (const auto& x :
       before.desired_of(1, 201).leases) { // The other worker has the first batches.
    mine.leases.push_back({x, {}});
    for (std::uint32_t i = 0; i < x.count; ++i)
      mine.leases.back().done.push_back(x.at(i));
  }
  REQUIRE(mine.leases.front().lease.first != batch_id{0});
  for (int i = 0; i < 32; ++i) {
    const member_id who{role::server, 0, {100}};
    after.receive(who, (after.last.contains(who) ? after : before).reconciled_status(who, 0));
    after.worker(1, 201, mine);
    after.tick(100ms);
  }
  REQUIRE_FALSE(after.desired_of(1, 201).leases.empty());
  CHECK(after.desired_of(1, 201).leases.front().first == batch_id{0});
}

TEST_CASE("gossip: a restarted coordinator leaves unknown batches to workers that may have them") {
  struct found_case {
    bool has_worked, is_other_absent;
  };
  for (const auto& [has_worked, is_other_absent] :
       {found_case{true, false}, found_case{false, true}, found_case{false, false}}) {
    auto job = job_of_mode(consistency_mode::asp, 1, is_other_absent ? 2 : 1, 1000);
    job.gossip = true;
    coordinator_fixture before(job);
    before.serve({{0, 100}});
    coordinator_fixture after(job, {}, state_of(before));
    worker_status mine;
    mine.counters.batches_computed = has_worked ? 20 : 0;
    const member_id server{role::server, 0, {100}};
    const auto has_leases = [&after] {
      return after.last.contains({role::worker, 0, {200}})
             && !after.desired_of(0, 200).leases.empty();
    };
    for (int i = 0; i < 6 && !has_leases(); ++i) {
      auto body = (after.last.contains(server) ? after : before).reconciled_status(server, 10);
      body.chains.at(0).applied.insert({30}); // Batches 10 to 29 are unknown.
      after.receive(server, body);
      after.worker(0, 200, mine);
      after.tick(is_other_absent ? 1s : 20ms); // Past the time that an absent worker has.
    }
    REQUIRE(has_leases());
    const bool may_have = has_worked || is_other_absent;
    CHECK(after.desired_of(0, 200).leases.front().first == batch_id{may_have ? 31U : 10U});
    CHECK_FALSE(after.told(event_kind::batches_missing));
    CHECK_FALSE(after.told(event_kind::batches_recomputed));
  }
}

TEST_CASE("a lease that comes too late, or of a past generation, is not believed") {
  for (const bool late : {true, false}) {
    const auto job = job_of_mode(consistency_mode::asp, 1, 1, 1000);
    coordinator_fixture before(job);
    before.serve({{0, 100}});
    auto stored = state_of(before);
    stored.generation = {2};
    coordinator_fixture one(job, {}, stored);
    const member_id server{role::server, 0, {100}}, worker{role::worker, 0, {200}};
    const lease old{(1ull << 32) + 7, {20}, 5, 1};
    worker_status mine;
    mine.generation = {late ? 2u : 1u};
    mine.leases = {{old, {}}};
    for (int i = 0; i < (late ? 31 : 0); ++i)
      one.tick(100ms);
    for (int i = 0; i < 6; ++i) {
      one.receive(server, (one.last.contains(server) ? one : before).reconciled_status(server, 0));
      one.receive(worker, mine);
    }
    REQUIRE_FALSE(one.desired_of(0, 200).leases.empty());
    CHECK(one.desired_of(0, 200).leases.front().first == batch_id{0});
    CHECK(one.desired_of(0, 200).leases.front().id > old.id);
  }
}

TEST_CASE("bsp: a restart that finds a server without its state rolls all back") {
  coordinator_fixture before(job_of_mode(consistency_mode::bsp, 2, 2, 200));
  before.train();
  coordinator_fixture after(before.job, {}, state_of(before));
  const member_id stays{role::server, 0, {100}};
  after.receive(stays, before.reconciled_status(stays, 0));
  after.server(1, 111);
  after.worker(0, 200);
  after.worker(1, 201);
  after.tick();
  CHECK(after.persisted.back().generation == generation_id{1});
  after.found(3);
  after.receive(stays,
                before.reconciled_status(stays, 0)); // The server's report predates the roll back.
  after.server(1, 111);
  CHECK(after.record_of(0, 100).base_checkpoint == 3);
  CHECK(after.record_of(1, 111).base_checkpoint == 3);
}

TEST_CASE("all died: a restart without resume restores the newest checkpoint too") {
  coordinator_fixture before(job_of_mode(consistency_mode::asp));
  before.train();
  coordinator_fixture after(before.job, {}, state_of(before));
  after.server(0, 110);
  after.server(1, 111);
  after.worker(0, 210);
  after.worker(1, 211);
  after.tick();
  CHECK(after.finds == 1);
  after.found(5);
  after.server(0, 110);
  CHECK(after.record_of(0, 110).base_checkpoint == 5);
}

TEST_CASE("observers see phase, progress, members and events") {
  coordinator_fixture one(job_of_mode(consistency_mode::asp));
  one.train();
  one.server(0, 100, 5);
  one.server(1, 101, 4);
  one.now += 100ms;
  one.observer();
  const auto& shown = std::get<job_status>(one.all_desired(role::observer, 0, 900).body);
  CHECK(shown.phase == job_phase::training);
  CHECK(shown.batches_done == 4);
  REQUIRE(shown.members.size() == 4);
  CHECK(shown.members[0].state == member_state::active);
  CHECK(shown.members[2].member == member_id{role::worker, 0, {200}});
  CHECK(shown.members[2].state == member_state::active);
  CHECK(shown.events_total == one.events.size());
  CHECK(shown.events == one.events);
  one.death(role::worker, 0, 200);
  const auto& later = std::get<job_status>(one.all_desired(role::observer, 0, 900).body);
  CHECK(later.members.back().state == member_state::absent);
}

} // namespace
} // namespace troupe::coordinator_failure_test
