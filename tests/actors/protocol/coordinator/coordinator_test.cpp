// Tests the coordinator's rules one by one; `troupe sim` runs all of them at once.
#include "tests/actors/coordinator_fixture.hpp"

namespace troupe::coordinator_test {
namespace {

using namespace std::chrono_literals;

// -- start --------------------------------------------------------------------------------------

TEST_CASE("the term is persisted first, and every order carries it") {
  const auto job = job_of_mode(consistency_mode::asp);
  storage::coordinator_state stored;
  stored.term = 4;
  stored.generation = {2};
  stored.job = fingerprint(job);
  stored.shard_of.assign(8, shard_id{1});
  coordinator_fixture one(job, {}, stored);
  REQUIRE(one.persisted.size() == 1);
  CHECK(one.persisted[0].term == 5);
  CHECK(one.persisted[0].generation == generation_id{2});
  CHECK(one.persisted[0].job == fingerprint(job));
}

TEST_CASE("state from before the checksum of files is kept by a job that has one") {
  auto job = job_of_mode(consistency_mode::asp);
  storage::coordinator_state stored;
  stored.term = 4;
  stored.generation = {2};
  stored.job = fingerprint(job);
  stored.shard_of.assign(8, shard_id{1});
  job.files_checksum = 7;
  coordinator_fixture one(job, {}, stored);
  CHECK(one.persisted.at(0).generation == generation_id{2}); // 3 in another job.
  CHECK(one.persisted[0].job == fingerprint(job));
}

TEST_CASE("fresh servers get a chain each, all partitions in them, and nothing to restore") {
  coordinator_fixture one(job_of_mode(consistency_mode::asp));
  one.server(0, 100);
  CHECK(one.record(1) == chain_metadata{}); // The chain waits for its server.
  one.server(1, 101);
  CHECK(one.text_of(0) == ", then 0.100");
  CHECK(one.text_of(1) == ", then 1.101");
  const auto& a = one.desired_of_server(0, 100);
  const auto& b = one.desired_of_server(1, 101);
  CHECK(a.chains == std::vector<desired_chain>{{{0}, one.record(0)}, {{1}, one.record(1)}});
  CHECK(b.chains == a.chains); // Every server is told of every chain.
  CHECK(a.shard_of.size() == 8);
  CHECK(std::count(a.shard_of.begin(), a.shard_of.end(), shard_id{0})
          + std::count(a.shard_of.begin(), a.shard_of.end(), shard_id{1})
        == 8);
  CHECK(a.shard_of == b.shard_of);
  CHECK(one.record(0).base_checkpoint == 0);
  CHECK(one.finds == 0);
  one.serve({{0, 100}, {1, 101}});
  CHECK(one.text_of(0) == "0.100");
  CHECK(one.text_of(1) == "1.101");
}

TEST_CASE("a server is told which of its reports was heard last") {
  coordinator_fixture one(job_of_mode(consistency_mode::asp));
  one.server(0, 100);
  one.now += 300ms;
  auto body = one.reconciled_status({role::server, 0, {100}}, 0);
  body.clock_ns = 77;
  one.receive({role::server, 0, {100}}, body);
  CHECK(one.desired_of_server(0, 100).heard_ns == 77);
}

TEST_CASE("training begins when all servers serve and all workers came") {
  coordinator_fixture one(job_of_mode(consistency_mode::asp));
  for (int i = 0; i < 2; ++i) { // Both servers seal, and the chains begin.
    one.server(0, 100);
    one.server(1, 101);
  }
  one.worker(0, 200);
  one.worker(1, 201);
  CHECK(one.boss->phase() == job_phase::gathering);
  CHECK_FALSE(one.desired_of(0, 200).view.chains[0].serving);
  one.server(0, 100);
  CHECK(one.boss->phase() == job_phase::gathering);
  one.server(1, 101);
  CHECK(one.boss->phase() == job_phase::training);
  const auto& shown = one.desired_of(0, 200).view;
  CHECK(shown.chains[1] == chain_entry{{1}, {role::server, 1, {101}}, true});
  CHECK(shown.shard_of == one.desired_of_server(0, 100).shard_of);
}

TEST_CASE("training begins with the workers that came, after the gather timeout") {
  coordinator_fixture one(job_of_mode(consistency_mode::asp));
  one.serve({{0, 100}, {1, 101}});
  one.worker(0, 200);
  for (int i = 0; i < 149; ++i) {
    one.tick(100ms);
    one.worker(0, 200);
    one.server(0, 100);
    one.server(1, 101);
  }
  CHECK(one.boss->phase() == job_phase::gathering);
  one.tick(100ms);
  CHECK(one.boss->phase() == job_phase::training);
}

TEST_CASE("resume restores from the newest good checkpoint, or says that there is none") {
  coordinator_options how;
  how.resume = true;
  coordinator_fixture one(job_of_mode(consistency_mode::asp), how);
  one.server(0, 100);
  one.server(1, 101);
  CHECK(one.chains_of(0, 100).empty());
  one.found(12);
  CHECK(one.record_of(0, 100).base_checkpoint == 12);
  CHECK(one.record_of(1, 101).base_checkpoint == 12);
  CHECK(one.text_of(1) == ", then 1.101");
  CHECK(one.finds == 1);

  coordinator_fixture two(job_of_mode(consistency_mode::asp), how);
  two.found(std::nullopt);
  CHECK(two.told(event_kind::no_checkpoint));
  two.server(0, 100);
  two.server(1, 101);
  CHECK(two.record_of(0, 100).base_checkpoint == 0);
  CHECK(two.finds == 1);
}

TEST_CASE("a resumed job does only what the restored applied batches lack") {
  coordinator_options how;
  how.resume = true;
  coordinator_fixture one(job_of_mode(consistency_mode::asp), how);
  one.found(12);
  for (int round = 0; round < 5; ++round) {
    one.server(0, 100, 40);
    one.server(1, 101, 44);
    one.worker(0, 200);
    one.worker(1, 201);
  }
  std::set<std::uint64_t> first;
  for (const auto index : {0u, 1u})
    for (const auto& x : one.desired_of(index, 200 + index).leases)
      first.insert(x.first.value);
  CHECK(*first.begin() == 40);
}

// -- status and desired state -------------------------------------------------------------------

TEST_CASE("a report of another job is ignored, with one event") {
  coordinator_fixture one(job_of_mode(consistency_mode::asp));
  coordinator_effects effects;
  for (int i = 1; i < 4; ++i) {
    status_message what{
      {role::worker, 0, {200}}, 1234, static_cast<std::uint64_t>(i), 0, worker_status{}};
    one.boss->receive(what, one.now, effects);
  }
  CHECK(effects.size() == 1);
  CHECK(std::holds_alternative<event_effect>(effects[0]));
}

TEST_CASE("desired states are sent when they change, and again to whoever reports 100 ms later") {
  coordinator_fixture one(job_of_mode(consistency_mode::asp));
  one.train();
  const member_id who{role::worker, 0, {200}};
  const auto before = one.sent[who];
  const auto sequence = one.last[who].sequence;
  one.worker(0, 200);
  CHECK(one.sent[who] == before); // The worker was just told, and no change followed.
  one.now += 100ms;
  one.worker(0, 200);
  CHECK(one.sent[who] == before + 1);
  CHECK(one.last[who].sequence > sequence);
  one.now += 100ms;
  one.tick();
  CHECK(one.sent[who] == before + 1); // The worker did not report.
}

TEST_CASE("an old report changes nothing") {
  coordinator_fixture one(job_of_mode(consistency_mode::asp));
  one.train();
  one.worker(0, 200);
  const auto sent = one.sent;
  one.now += 1s;
  coordinator_effects effects;
  status_message what{{role::worker, 0, {200}}, fingerprint(one.job), 1, 0, worker_status{}};
  one.boss->receive(what, one.now, effects);
  CHECK(effects.empty());
}

TEST_CASE("a member hears of those that it may connect to, at once when another one comes") {
  coordinator_fixture one(job_of_mode(consistency_mode::asp));
  one.train();
  one.observer();
  const member_id worker{role::worker, 0, {200}}, observer{role::observer, 0, {900}};
  const std::vector<member_address> first{{{role::server, 0, {100}}, "s100"},
                                          {{role::server, 1, {101}}, "s101"}};
  for (const auto& who : {worker, observer, first[0].member})
    CHECK(one.last.at(who).listeners == first);
  one.server(2, 102);
  auto all = first;
  all.push_back({{role::server, 2, {102}}, "s102"});
  for (const auto& who : {worker, observer, first[0].member, all[2].member})
    CHECK(one.last.at(who).listeners == all);
  one.death(role::server, 2, 102);
  CHECK(one.last.at(worker).listeners == first);
}

TEST_CASE("a restarted server is told with its new address") {
  coordinator_fixture one(job_of_mode(consistency_mode::asp));
  one.train();
  one.death(role::server, 1, 101);
  one.server(1, 111);
  CHECK(one.all_desired(role::worker, 0, 200).listeners
        == std::vector<member_address>{{{role::server, 0, {100}}, "s100"},
                                       {{role::server, 1, {111}}, "s111"}});
}

TEST_CASE("a member whose address contradicts its role is sent home with a line") {
  coordinator_fixture one(job_of_mode(consistency_mode::asp));
  const member_id server{role::server, 0, {100}}, observer{role::observer, 0, {900}};
  one.receive(server, server_status{}, "");
  one.receive(observer, observer_status{}, "10.0.0.1:4001");
  const auto line_to = [&](const member_id& who) {
    const auto& told = one.last.at(who);
    CHECK(told.stop);
    return told.failed ? told.failed->text : "";
  };
  CHECK(line_to(server)
        == "server 0 brings no address, but its role listens: build all hosts alike");
  CHECK(line_to(observer)
        == "observer 0 brings the address 10.0.0.1:4001, but its role does not listen: build all "
           "hosts alike");
  CHECK(one.events.empty()); // None of them has become a member.
  one.train();
  CHECK(one.desired_of(0, 200).admitted); // As with the right addresses they may come.
}

TEST_CASE("a server beyond what a job can have is sent home, one beyond the job's may join") {
  coordinator_fixture one(job_of_mode(consistency_mode::asp));
  one.server(partitions_max, 104);
  CHECK(one.all_desired(role::server, partitions_max, 104).stop);
  CHECK(one.all_desired(role::server, partitions_max, 104).failed);
  one.server(2, 105);
  CHECK_FALSE(one.all_desired(role::server, 2, 105).stop);
  CHECK(one.told(event_kind::member_joined, {{"member", "server 2"}}));
}

TEST_CASE("a worker or an observer beyond what a job can have is sent home") {
  coordinator_fixture one(job_of_mode(consistency_mode::asp));
  one.worker(workers_max, 300);
  CHECK(one.all_desired(role::worker, workers_max, 300).stop);
  one.worker(workers_max - 1, 301);
  CHECK_FALSE(one.all_desired(role::worker, workers_max - 1, 301).stop);
  for (std::uint32_t i = 0; i < 1001; ++i)
    one.receive({role::observer, i, {1000}}, observer_status{});
  CHECK_FALSE(one.all_desired(role::observer, 999, 1000).stop);
  CHECK(one.all_desired(role::observer, 1000, 1000).stop);
}

TEST_CASE("a report costs desired states for those whose own changed, not for all members") {
  coordinator_fixture one(job_of_mode(consistency_mode::asp, 2, 50, 10'000));
  for (int i = 0; i < 5; ++i) {
    one.server(0, 100);
    one.server(1, 101);
    for (std::uint32_t worker = 0; worker < 50; ++worker)
      one.worker(worker, 200 + worker);
  }
  REQUIRE(one.boss->phase() == job_phase::training);
  auto before = one.boss->desired_made();
  one.worker(0, 200);
  one.tick();
  CHECK(one.boss->desired_made() == before);
  worker_status body; // The worker did its first lease and gets another one.
  const auto mine = one.desired_of(0, 200).leases.at(0);
  body.leases = {{mine, {}}};
  for (std::uint32_t i = 0; i < mine.count; ++i)
    body.leases[0].done.push_back(mine.at(i));
  before = one.boss->desired_made();
  one.worker(0, 200, body);
  CHECK(one.boss->desired_made() == before + 1);
  CHECK(one.desired_of(0, 200).leases.at(0) != mine);
  before = one.boss->desired_made();
  one.death(role::worker, 1, 201); // Servers are told of the loss, and others get its work.
  CHECK(one.boss->desired_made() > before + 2);
  CHECK(one.desired_of_server(0, 100).workers.size() == 49);
}

// -- admission ----------------------------------------------------------------------------------

TEST_CASE(
  "a worker gets leases only after every server promised it a clock, and starts at the largest") {
  coordinator_fixture one(job_of_mode(consistency_mode::ssp));
  one.serve({{0, 100}, {1, 101}});
  one.worker(0, 200);
  one.worker(1, 201);
  CHECK(one.desired_of_server(0, 100).workers.size() == 2);
  CHECK_FALSE(one.desired_of_server(0, 100).workers[0].known);
  const auto promise = [&](std::uint32_t index, std::uint64_t clock) {
    auto body = one.reconciled_status({role::server, index, {100 + index}}, 0);
    body.chains.at(index).clocks = {{{0}, {200}, clock, true}, {{1}, {201}, 0, true}};
    one.receive({role::server, index, {100 + index}}, body);
  };
  promise(0, 7);
  CHECK_FALSE(one.desired_of(0, 200).admitted);
  CHECK(one.desired_of(0, 200).leases.empty());
  promise(1, 9);
  CHECK(one.desired_of(0, 200).admitted);
  CHECK(one.desired_of(0, 200).start_clock == 9);
  CHECK_FALSE(one.desired_of(0, 200).leases.empty());
  CHECK(one.desired_of_server(0, 100).workers[0] == clock_entry{{0}, {200}, 9, true});
}

TEST_CASE("a promise to another incarnation does not count") {
  coordinator_fixture one(job_of_mode(consistency_mode::ssp, 1, 1));
  one.serve({{0, 100}});
  one.worker(0, 200);
  REQUIRE(one.boss->phase() == job_phase::training);
  auto body = one.reconciled_status({role::server, 0, {100}}, 0);
  body.chains.at(0).clocks = {{{0}, {199}, 0, true}};
  one.receive({role::server, 0, {100}}, body);
  CHECK_FALSE(one.desired_of(0, 200).admitted);
  one.server(0, 100);
  CHECK(one.desired_of(0, 200).admitted);
}

TEST_CASE(
  "a worker without work leaves the list, and comes back only when no server lists it any more") {
  coordinator_fixture one(
    job_of_mode(consistency_mode::ssp, 1, 2, 2)); // Two batches make two leases.
  for (int i = 0; i < 5; ++i) {
    one.server(0, 100);
    one.worker(0, 200);
    one.worker(1, 201);
  }
  const auto mine = one.desired_of(0, 200).leases;
  REQUIRE(mine.size() == 1);
  worker_status body;
  body.clock = 1;
  body.leases = {{mine[0], {mine[0].first}}};
  one.worker(0, 200, body);
  CHECK_FALSE(one.desired_of(0, 200).admitted);
  CHECK(one.desired_of_server(0, 100).workers.size() == 1);

  // Work appears while the server still lists the worker, with the clock of its first stay.
  auto stale = one.reconciled_status({role::server, 0, {100}}, 0);
  auto& clocks = stale.chains.at(0).clocks;
  clocks = {{{0}, {200}, 1, true}, {{1}, {201}, 0, true}};
  one.death(role::worker, 1, 201);
  one.receive({role::server, 0, {100}}, stale);
  CHECK_FALSE(one.desired_of(0, 200).admitted);
  clocks = {};
  one.receive({role::server, 0, {100}}, stale);
  CHECK(one.desired_of_server(0, 100).workers == std::vector<clock_entry>{{{0}, {200}, 0, false}});
  clocks = {{{0}, {200}, 5, true}};
  one.receive({role::server, 0, {100}}, stale);
  CHECK(one.desired_of(0, 200).admitted);
  CHECK(one.desired_of(0, 200).start_clock == 5);
}

// -- the end ------------------------------------------------------------------------------------

TEST_CASE("complete, last checkpoint, finished, done, stopped") {
  coordinator_fixture one(job_of_mode(consistency_mode::asp));
  one.train();
  one.observer();
  one.server(0, 100, 64);
  CHECK(one.boss->phase() == job_phase::training);
  one.server(1, 101, 64);
  CHECK(one.boss->phase() == job_phase::finishing);
  CHECK(one.desired_of_server(0, 100).checkpoint == 1);
  one.part(0, 100, 64);
  one.part(1, 101, 64);
  CHECK(one.boss->phase() == job_phase::finishing);
  one.committed(1);
  CHECK(one.boss->phase() == job_phase::finished);
  CHECK_FALSE(one.all_desired(role::server, 0, 100).stop);
  observer_status done;
  done.done = true;
  one.observer(done);
  CHECK(one.boss->phase() == job_phase::stopped);
  CHECK(one.all_desired(role::server, 0, 100).stop);
  CHECK(one.all_desired(role::worker, 1, 201).stop);
  CHECK(one.all_desired(role::observer, 0, 900).stop);
  CHECK_FALSE(one.all_desired(role::worker, 1, 201).failed);
}

TEST_CASE("without an observer a finished job stops by itself") {
  coordinator_options how;
  how.checkpoints = false;
  coordinator_fixture one(job_of_mode(consistency_mode::asp), how);
  one.train();
  one.server(0, 100, 64);
  one.server(1, 101, 64);
  CHECK(one.boss->phase() == job_phase::finished);
  for (int i = 0; i < 52; ++i)
    one.tick(100ms);
  CHECK(one.boss->phase() == job_phase::stopped);
}

TEST_CASE("a finished job trains again if a server comes back without the last batches") {
  coordinator_fixture one(job_of_mode(consistency_mode::asp));
  one.train();
  one.server(0, 100, 64);
  one.server(1, 101, 64);
  one.death(role::server, 0, 100);
  one.server(0, 110);
  one.found(std::nullopt);
  one.serve({{0, 110}});
  CHECK(one.boss->phase() == job_phase::training);
}

TEST_CASE("stop on request: one more checkpoint, or ten seconds") {
  for (const bool commits : {true, false}) {
    coordinator_fixture one(job_of_mode(consistency_mode::asp, 2, 2, 1000));
    one.train();
    observer_status stop;
    stop.stop = true;
    one.observer(stop);
    CHECK(one.boss->phase() == job_phase::finishing);
    CHECK(one.desired_of_server(0, 100).checkpoint == 1);
    if (commits) {
      one.part(0, 100, 3);
      one.part(1, 101, 3);
      one.committed(1);
    }
    for (int i = 0; i < 101; ++i) {
      one.tick(100ms);
      if (i < 99)
        CHECK((one.boss->phase() == job_phase::stopped) == commits);
    }
    CHECK(one.boss->phase() == job_phase::stopped);
    CHECK_FALSE(one.all_desired(role::worker, 0, 200).failed);
  }
}

TEST_CASE("no worker may push after the last cut of a stopped job") {
  coordinator_fixture one(job_of_mode(consistency_mode::asp, 2, 2, 1000));
  one.train();
  REQUIRE_FALSE(one.desired_of(0, 200).leases.empty());
  REQUIRE(one.desired_of_server(0, 100).workers.size() == 2);
  observer_status stop;
  stop.stop = true;
  one.observer(stop);
  for (std::uint32_t i = 0; i < 2; ++i) { // The order and the end of pushes are one desired state.
    CHECK(one.desired_of_server(i, 100 + i).checkpoint == 1);
    CHECK(one.desired_of_server(i, 100 + i).workers.empty());
    CHECK(one.desired_of(i, 200 + i).leases.empty());
    CHECK_FALSE(one.desired_of(i, 200 + i).admitted);
  }
  one.tick(1s); // Nor later, while the checkpoint is written.
  one.worker(2, 202);
  one.part(0, 100, 3);
  one.part(1, 101, 3);
  for (std::uint32_t i = 0; i < 3; ++i)
    CHECK(one.desired_of(i, 200 + i).leases.empty());
  CHECK(one.desired_of_server(0, 100).workers.empty());
}

TEST_CASE("a stopped bsp job works up to the clock of its last cut and not further") {
  coordinator_fixture one(job_of_mode(consistency_mode::bsp, 2, 2, 1000));
  one.train();
  const auto newest = [&](std::uint32_t worker) {
    std::uint64_t last = 0;
    for (const auto& each : one.desired_of(worker, 200 + worker).leases)
      last = std::max(last, each.at(each.count - 1).value);
    return last;
  };
  REQUIRE(newest(0) > 10);
  observer_status stop;
  stop.stop = true;
  one.observer(stop);
  const auto cut = one.desired_of_server(0, 100).checkpoint_clock;
  CHECK(cut == 2);
  CHECK(one.desired_of_server(0, 100).workers.size() == 2);
  CHECK(newest(0) + newest(1) == 2 + 3); // Both slots of clock 1.
  one.part(0, 100, 2);
  one.part(1, 101, 2);
  CHECK(newest(0) + newest(1) == 2 + 3);
}

TEST_CASE("whoever cannot go on ends the job, and everyone is told why") {
  const auto check = [](auto bring, const std::string& why) {
    coordinator_fixture one(job_of_mode(consistency_mode::asp));
    one.train();
    bring(one);
    CHECK(one.boss->phase() == job_phase::stopped);
    CHECK(one.all_desired(role::server, 1, 101).stop);
    CHECK(one.all_desired(role::server, 1, 101).failed.value().text == why);
  };
  check(
    [](coordinator_fixture& one) {
      worker_status body;
      body.failed = failure{errc::job_failed, "out of memory"};
      one.worker(0, 200, body);
    },
    "worker 0: out of memory");
  check(
    [](coordinator_fixture& one) {
      auto body = one.reconciled_status({role::server, 0, {100}}, 0);
      body.chains.at(0).failed = failure{errc::job_failed, "no such file"};
      one.receive({role::server, 0, {100}}, body);
    },
    "server 0: no such file");
  check(
    [](coordinator_fixture& one) {
      observer_status body;
      body.failed = failure{errc::job_failed, "worker 0 died too often"};
      one.observer(body);
    },
    "worker 0 died too often");
}

TEST_CASE("a failure with an empty text ends the job as any other does") {
  const failure silent{errc::job_failed, ""};
  const auto check = [](auto bring, const std::string& why) {
    coordinator_fixture one(job_of_mode(consistency_mode::asp));
    one.train();
    bring(one);
    CHECK(one.boss->phase() == job_phase::stopped);
    CHECK(one.told(event_kind::job_failed, {{"reason", why}}));
    for (const auto& what :
         {one.all_desired(role::worker, 0, 200), one.all_desired(role::server, 1, 101)}) {
      CHECK(what.stop);
      CHECK(what.failed == failure{errc::job_failed, why});
    }
  };
  check(
    [&](auto& one) {
      worker_status body;
      body.failed = silent;
      one.worker(0, 200, body);
    },
    "worker 0: ");
  check(
    [&](auto& one) {
      auto body = one.reconciled_status({role::server, 0, {100}}, 0);
      body.chains.at(0).failed = silent;
      one.receive({role::server, 0, {100}}, body);
    },
    "server 0: ");
  check(
    [&](auto& one) {
      observer_status body;
      body.failed = silent;
      one.observer(body);
    },
    "");
}

TEST_CASE("only the main launcher ends a job; of a joined one deaths count") {
  coordinator_fixture one(job_of_mode(consistency_mode::asp));
  one.train();
  observer_status body;
  body.stop = body.done = true;
  body.failed = failure{errc::job_failed, "worker 7 died too often"};
  body.deaths = {{{role::worker, 1, {201}}}};
  one.receive({role::observer, 5, {905}}, body);
  one.receive({role::observer, 5, {905}}, body);
  CHECK(one.boss->phase() == job_phase::training);
  CHECK(one.told(event_kind::worker_lost, {{"member", "worker 1"}}));
  CHECK(one.times_told(event_kind::launcher_failed, {{"reason", "worker 7 died too often"}}) == 1);
  one.observer(body);
  CHECK(one.boss->phase() == job_phase::stopped);
}

TEST_CASE("a joined launcher does not keep a finished job alive") {
  coordinator_options how;
  how.checkpoints = false;
  coordinator_fixture one(job_of_mode(consistency_mode::asp), how);
  one.train();
  one.server(0, 100, 64);
  one.server(1, 101, 64);
  REQUIRE(one.boss->phase() == job_phase::finished);
  for (int i = 0; i < 52; ++i) {
    one.tick(100ms);
    one.server(0, 100, 64);
    one.server(1, 101, 64);
    one.receive({role::observer, 5, {905}}, observer_status{});
  }
  CHECK(one.boss->phase() == job_phase::stopped);
}

TEST_CASE("a server that reports more batches than the job has is ignored, and told of once") {
  coordinator_fixture one(job_of_mode(consistency_mode::asp));
  one.train();
  one.server(1, 101, 64);
  one.server(0, 100, std::uint64_t{1} << 40);
  one.server(0, 100, 65);
  CHECK(one.boss->phase() == job_phase::training);
  CHECK(one.times_told(event_kind::member_inconsistent, {{"member", "server 0"}}) == 1);
  one.server(0, 100, 64);
  CHECK(one.boss->phase() == job_phase::finishing);
}

TEST_CASE("who is missing is told once, when gathering takes long") {
  coordinator_fixture one(job_of_mode(consistency_mode::asp, 2, 3));
  const auto pass = [&](int count) {
    for (int i = 0; i < count; ++i) {
      one.tick(100ms);
      one.server(0, 100);
      one.worker(0, 200);
      one.worker(1, 201);
    }
  };
  pass(149);
  CHECK_FALSE(one.told(event_kind::members_missing));
  pass(60);
  CHECK(one.times_told(event_kind::members_missing, {{"members", "server 1, worker 2"}}) == 1);
}

TEST_CASE("a last checkpoint that cannot be written fails the job after five attempts") {
  coordinator_fixture one(job_of_mode(consistency_mode::asp));
  one.train();
  one.server(0, 100, 64);
  one.server(1, 101, 64);
  for (std::uint64_t number = 1; number <= 5; ++number) {
    for (int i = 0; i < 12; ++i) {
      one.tick(100ms);
      one.worker(0, 200);
      one.worker(1, 201);
    }
    CHECK(one.boss->phase() == job_phase::finishing);
    one.part(0, 100, 64, number);
    one.server(1, 101, 64);
  }
  CHECK(one.boss->phase() == job_phase::stopped);
}

} // namespace
} // namespace troupe::coordinator_test
