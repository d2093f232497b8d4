// Tests chains of several replicas and chains that move: servers are lost, come back, are added and
// drained.
#include "tests/actors/coordinator_fixture.hpp"

namespace troupe::coordinator_replication_test {
namespace {

using namespace std::chrono_literals;

using servers = std::map<std::uint32_t, std::uint64_t>;
const servers all_three = {{0, 100}, {1, 101}, {2, 102}};

/// Lets `time` pass while the servers in `alive` and both workers report.
void pass(coordinator_fixture& one, std::chrono::milliseconds time, const servers& alive,
          std::uint64_t applied = 0) {
  for (auto step = 0ms; step < time; step += 100ms) {
    one.tick(100ms);
    for (const auto& [index, incarnation] : alive)
      one.server(index, incarnation, applied);
    one.worker(0, 200);
    one.worker(1, 201);
  }
}

/// Three servers that lead a chain each; the job trains.
struct replicated : coordinator_fixture {
  explicit replicated(std::uint32_t replicas, consistency_mode mode = consistency_mode::asp,
                      coordinator_options how = {})
      : coordinator_fixture(job_of_replicas(replicas, 1000, mode), how) {
    pass(*this, 500ms, all_three);
    REQUIRE(boss->phase() == job_phase::training);
    REQUIRE_FALSE(desired_of(0, 200).leases.empty());
  }

  bool serves(std::uint32_t chain) { return desired_of(0, 200).view.chains.at(chain).serving; }
};

// -- placement ----------------------------------------------------------------------------------

TEST_CASE("a chain of several replicas is started by servers in a row, when all have come") {
  coordinator_fixture one(job_of_replicas(2));
  one.server(0, 100);
  one.server(1, 101);
  CHECK(one.text_of(0) == ", then 0.100 1.101");
  CHECK(one.record(1) == chain_metadata{});
  one.serve({{0, 100}, {1, 101}, {2, 102}});
  CHECK(one.text_of(0) == "0.100 1.101");
  CHECK(one.text_of(1) == "1.101 2.102");
  CHECK(one.text_of(2) == "2.102 0.100");
  REQUIRE(one.chains_of(0, 100).size() == 2);
  CHECK(one.chains_of(0, 100)[0].shard == shard_id{0});
  CHECK(one.chains_of(0, 100)[1].shard == shard_id{2});
  CHECK(one.all_desired(role::server, 0, 100).listeners
        == std::vector<member_address>{{{role::server, 0, {100}}, "s100"},
                                       {{role::server, 1, {101}}, "s101"},
                                       {{role::server, 2, {102}}, "s102"}});
}

TEST_CASE("a server that is late at the start gets its chain all the same") {
  coordinator_fixture one(job_of_mode(consistency_mode::asp));
  pass(one, 15'000ms, {{1, 101}});
  one.server(0, 100);
  CHECK(one.text_of(0) == ", then 0.100");
  CHECK(one.text_of(1) == "1.101");
}

TEST_CASE("a lost chain waits for its server, then another one takes it, and it comes back") {
  for (const bool returns : {true, false}) {
    CAPTURE(returns);
    coordinator_options how;
    how.return_timeout = 4000ms;
    replicated one(1, consistency_mode::asp, how);
    one.death(role::server, 0, 100);
    one.found(7);
    pass(one, 3500ms, {{1, 101}, {2, 102}}, 5);
    CHECK(one.text_of(0) == "0.100");
    if (!returns) {
      pass(one, 1000ms, {{1, 101}, {2, 102}}, 5);
      CHECK(one.text_of(0) == "1.101");
      CHECK(one.told(event_kind::shard_restored, {{"shard", "0"}, {"checkpoint", "7"}}));
      CHECK(one.serves(0));
    }
    pass(one, 2000ms, {{0, 110}, {1, 101}, {2, 102}}, 5);
    CHECK(one.text_of(0) == "0.110");
    CHECK(one.text_of(1) == "1.101");
    CHECK(one.serves(0));
    CHECK(one.finds == 1); // A move rolls nothing back.
    CHECK(one.times_told(event_kind::shard_restored) == 1);
  }
}

TEST_CASE("a server that is added gets its share") {
  replicated one(2);
  auto alive = all_three;
  alive[3] = 103;
  alive[4] = 104;
  pass(one, 3000ms, alive);
  for (const std::uint32_t added : {3u, 4u})
    CHECK(one.chains_of(added, alive[added]).size() == 1);
  CHECK(one.finds == 0);
  for (const std::uint32_t chain : {0u, 1u, 2u})
    CHECK(one.serves(chain));
}

TEST_CASE("a drained server's chains go to others, and it stays without") {
  replicated before(1);
  auto stored = state_of(before);
  stored.draining = {{0}};
  coordinator_fixture after(before.job, {}, stored);
  for (const auto& [index, incarnation] : all_three) {
    const member_id who{role::server, index, {incarnation}};
    after.receive(who, before.reconciled_status(who, 3));
  }
  pass(after, 6000ms, all_three, 3);
  CHECK(after.chains_of(0, 100).empty());
  CHECK(after.text_of(0) == "1.101");
  CHECK(after.finds == 0);
}

TEST_CASE("a server that reports a chain that the job does not have is ignored") {
  replicated one(1);
  auto body = one.reconciled_status({role::server, 0, {100}}, 0);
  body.chains.push_back({});
  body.chains.back().shard = {3};
  one.receive({role::server, 0, {100}}, body);
  CHECK(one.told(event_kind::member_inconsistent, {{"member", "server 0"}}));
}

// -- losses -------------------------------------------------------------------------------------

TEST_CASE("when a replica dies the others go on with all they have, and it joins again") {
  for (const auto mode : {consistency_mode::asp, consistency_mode::bsp}) {
    replicated one(2, mode);
    const auto leases = one.desired_of(1, 201).leases;
    one.death(role::server, 0, 100);
    CHECK(one.text_of(0) == "0.100 1.101, then 1.101"); // The remaining replica has to seal it.
    CHECK_FALSE(one.serves(0));
    pass(one, 300ms, {{1, 101}, {2, 102}}, 6);
    CHECK(one.text_of(0) == "1.101");
    CHECK(one.text_of(2) == "2.102");
    CHECK(one.desired_of(0, 200).view.chains[0].head == member_id{role::server, 1, {101}});
    for (const std::uint32_t chain : {0u, 1u, 2u})
      CHECK(one.serves(chain));
    pass(one, 1000ms, {{0, 110}, {1, 101}, {2, 102}}, 6);
    CHECK(one.text_of(0) == "1.101 0.110");
    CHECK(one.text_of(2) == "2.102 0.110");
    CHECK(one.finds == 0);
    CHECK_FALSE(one.told_rollback());
    CHECK(one.persisted.back().generation == generation_id{0});
    CHECK(one.desired_of(1, 201).leases == leases);
  }
}

TEST_CASE("for one that does not come back another server takes its place after return_timeout") {
  coordinator_options how;
  how.return_timeout = 2000ms;
  replicated one(2, consistency_mode::asp, how);
  one.death(role::server, 0, 100);
  pass(one, 1900ms, {{1, 101}, {2, 102}});
  CHECK(one.text_of(0) == "1.101");
  pass(one, 1000ms, {{1, 101}, {2, 102}});
  CHECK(one.text_of(0) == "1.101 2.102");
  CHECK(one.text_of(2) == "2.102 1.101");
}

TEST_CASE("a silent server is replaced after 1.3 s where others have what it has, and not dead") {
  replicated one(2);
  pass(one, 1200ms, {{1, 101}, {2, 102}});
  CHECK(one.text_of(0) == "0.100 1.101");
  pass(one, 600ms, {{1, 101}, {2, 102}});
  CHECK(one.desired_of(0, 200).view.chains[0].head == member_id{role::server, 1, {101}});
  CHECK(one.serves(0));
  CHECK_FALSE(one.told_loss());
  pass(one, 1000ms, all_three); // What it holds is a past state: it joins.
  CHECK(one.chains_of(0, 100).size() == 2);
  CHECK_FALSE(one.told_rollback());
  pass(one, 5100ms, {{1, 101}, {2, 102}});
  CHECK(
    one.told(event_kind::server_lost, {{"member", "server 0"}, {"reason", "silent for 5000 ms"}}));
}

/// Reports that the server cannot write its log of chain 0.
void fail(coordinator_fixture& one, std::uint32_t index) {
  const member_id who{role::server, index, {all_three.at(index)}};
  auto body = one.reconciled_status(who, 0);
  body.chains.at(0).failed = failure{errc::io_failed, "No space left"};
  one.receive(who, body);
}

TEST_CASE("a server that cannot write its log is replaced where others have what it has") {
  replicated one(2);
  const auto pass_without_it = [&](std::chrono::milliseconds time) {
    for (auto step = 0ms; step < time; step += 100ms) {
      fail(one, 1);
      pass(one, 100ms, {{0, 100}, {2, 102}});
    }
  };
  pass_without_it(1200ms);
  CHECK(one.text_of(0) == "0.100 1.101");
  CHECK(
    one.told(event_kind::server_removed, {{"member", "server 1"}, {"reason", "No space left"}}));
  pass_without_it(1000ms);
  CHECK(one.text_of(0) == "0.100 2.102");
  CHECK(one.text_of(1) == "2.102 0.100");
  pass_without_it(6000ms);
  CHECK(one.boss->phase() == job_phase::training);
  CHECK_FALSE(one.told_loss());
  CHECK(one.chains_of(1, 101).empty());
  pass(one, 2000ms, all_three); // The server has started with an empty state.
  CHECK_FALSE(one.chains_of(1, 101).empty());
}

TEST_CASE("a server that cannot write its log fails the job where nobody else has what it has") {
  replicated one(2);
  SUBCASE("its neighbour is dead") { one.death(role::server, 0, 100); }
  SUBCASE("its neighbour cannot either") {
    fail(one, 0);
    CHECK(one.boss->phase() == job_phase::training);
  }
  fail(one, 1);
  CHECK(one.boss->phase() == job_phase::stopped);
  CHECK(one.told(event_kind::job_failed, {{"reason", "server 1: No space left"}}));
}

TEST_CASE("with one replica a silent server is waited for until it is dead") {
  replicated one(1);
  const auto record = one.record(0);
  pass(one, 4900ms, {{1, 101}, {2, 102}});
  CHECK(one.record(0) == record);
  CHECK(one.serves(0));
  pass(one, 300ms, {{1, 101}, {2, 102}});
  CHECK(
    one.told(event_kind::server_lost, {{"member", "server 0"}, {"reason", "silent for 5000 ms"}}));
  CHECK(one.finds == 1);
}

TEST_CASE("servers that alone hold something are waited for longer than others") {
  for (const bool return_in_time : {true, false}) {
    CAPTURE(return_in_time);
    replicated one(2);
    pass(one, 100ms, all_three, 4);
    pass(one, 29'000ms, {{2, 102}}, 4); // Servers 0 and 1 held chain 0.
    CHECK(one.finds == 0);
    CHECK(one.told_loss() == false);
    if (return_in_time) {
      pass(one, 2000ms, all_three, 4);
      CHECK(one.finds == 0);
      CHECK(one.serves(0));
      CHECK_FALSE(one.told_rollback());
      continue;
    }
    pass(one, 1200ms, {{2, 102}}, 4);
    CHECK(one.told(event_kind::server_lost,
                   {{"member", "server 0"}, {"reason", "silent for too long"}}));
    CHECK(one.finds == 1);
    one.found(3);
    pass(one, 12'000ms, {{2, 102}}, 1); // One server has to be enough.
    for (const std::uint32_t chain : {0u, 1u, 2u})
      CHECK(one.serves(chain));
    CHECK(one.told(event_kind::shard_restored,
                   {{"shard", "0"}, {"checkpoint", "3"}, {"updates", "3"}}));
  }
}

TEST_CASE("a checkpoint survives the death of a follower, and not that of a head") {
  coordinator_options how;
  how.checkpointing.interval = 100ms;
  for (const bool head : {true, false}) {
    replicated one(3, consistency_mode::asp, how);
    pass(one, 200ms, all_three, 5);
    REQUIRE(one.desired_of_server(1, 101).checkpoint == 1);
    one.part(1, 101, 5);
    one.part(2, 102, 5);
    if (!head)
      one.part(0, 100, 5); // All parts have arrived: the checkpoint cannot fail any more.
    one.death(role::server, 0, 100);
    CHECK(one.commits.size() == (head ? 0 : 1));
    CHECK(one.desired_of_server(1, 101).checkpoint == 0);
  }
}

// -- bsp: one generation for all ----------------------------------------------------------------

TEST_CASE("bsp: a chain that is lost while all go back makes all go back once more") {
  replicated one(1, consistency_mode::bsp);
  pass(one, 200ms, all_three, 20);
  one.death(role::server, 0, 100);
  one.found(3);
  one.serve({{1, 101}, {2, 102}}, 12);
  CHECK(one.text_of(1) == "1.101");
  const auto begun = one.record(1).active.generation;
  one.death(role::server, 1, 101);
  CHECK(one.finds == 2);
  one.found(2); // The newest checkpoint is gone.
  one.serve({{0, 110}, {1, 111}, {2, 102}}, 8);
  for (const std::uint32_t chain : {0u, 1u, 2u})
    CHECK(one.record(chain).base_checkpoint == 2);
  CHECK(one.record(2).active.generation > begun);
  CHECK(one.persisted.back().generation == generation_id{1}); // Nothing was done in it.
  CHECK(
    one.told(event_kind::shard_restored, {{"shard", "0"}, {"checkpoint", "2"}, {"updates", "12"}}));
  pass(one, 200ms, {{0, 110}, {1, 111}, {2, 102}}, 8);
  CHECK(one.desired_of(0, 200).leases.front().first == batch_id{8});
}

TEST_CASE("bsp with logs: all go back only where a chain did not keep what it had acknowledged") {
  for (const bool kept : {true, false}) {
    CAPTURE(kept);
    auto job = job_of_mode(consistency_mode::bsp);
    job.durability = durability_mode::log;
    coordinator_fixture one(job);
    one.train();
    one.recovered = kept;
    one.death(role::server, 0, 100);
    one.found(3);
    one.serve({{0, 110}, {1, 101}}, 8);
    one.found(3);
    one.serve({{0, 110}, {1, 101}}, 8);
    const auto generation = one.persisted.back().generation;
    CHECK(generation == generation_id{kept ? 0u : 1u});
    CHECK(one.record(1).active.generation == generation_id{kept ? 1u : 2u});
    CHECK(one.record(0).active.generation == generation_id{kept ? 2u : 3u});
    CHECK(one.desired_of(0, 200).view.chains.at(0).serving);
    // Otherwise a coordinator that starts from this state would not know that all chains roll back.
    const bool acts_alone = std::ranges::any_of(one.persisted, [](const auto& x) {
      return x.chains[0].active.generation == generation_id{2} && !x.rolling_back;
    });
    CHECK(acts_alone == kept);
  }
}

/// With logs, both servers of chain 0 have ended and are back; server 0 is to begin the chain
/// again.
struct starting : coordinator_fixture {
  starting() : coordinator_fixture(durable()) {
    pass(*this, 500ms, all_three);
    death(role::server, 0, 100);
    death(role::server, 1, 101);
    found(3);
    server(0, 110);
    server(1, 111);
    REQUIRE(text_of(0) == "0.100 1.101, then 0.110");
  }

  static job_spec durable() {
    auto job = job_of_replicas(2);
    job.durability = durability_mode::log;
    return job;
  }
};

TEST_CASE("with logs, a server that has lost its own leaves the beginning to another one") {
  starting one;
  one.server(0, 110);
  CHECK(one.text_of(0) == "0.100 1.101, then 1.111");
  one.recovered = true;
  one.server(1, 111);
  CHECK(one.text_of(0).starts_with("1.111"));
}

TEST_CASE("clients are told of all members of a chain that are there") {
  replicated one(3);
  const auto members = [&](std::uint32_t chain) {
    std::string all;
    const auto& told = one.all_desired(role::worker, 0, 200);
    for (const auto& each : one.desired_of(0, 200).view.chains.at(chain).others)
      all += address_of(told.listeners, each) + " ";
    return all;
  };
  CHECK(members(0) == "s101 s102 ");
  CHECK(members(2) == "s100 s101 ");
  one.death(role::server, 1, 101);
  CHECK(members(0) == "s102 ");
}

TEST_CASE("of two servers that cannot talk to each other one is left out, and that is told") {
  replicated one(2);
  auto body = one.reconciled_status({role::server, 0, {100}}, 0);
  body.chains.front().status.stalled = true;
  one.receive({role::server, 0, {100}}, body);
  CHECK(one.text_of(0) == "0.100 1.101, then 0.100 +2.102");
  CHECK(one.told(event_kind::servers_disconnected,
                 {{"member", "server 1"}, {"other", "server 0"}, {"shard", "0"}}));
}

TEST_CASE("bsp: a chain that was about to begin is begun again in the new generation") {
  coordinator_options how;
  how.resume = true;
  coordinator_fixture one(job_of_mode(consistency_mode::bsp), how);
  one.server(0, 100);
  one.server(1, 101);
  one.found(12);
  one.serve({{0, 100}}, 4);
  const auto before = *one.record(1).proposed; // Server 1 is loading for generation 0.
  one.death(role::server, 0, 100);
  one.found(12);
  CHECK(one.record(1).proposed->generation > before.generation);
  one.serve({{0, 110}, {1, 101}}, 4);
  CHECK(one.told(event_kind::all_rolled_back, {{"clock", "2"}, {"generation", "1"}}));
}

TEST_CASE("bsp: what a chain says of the time before does not count while it waits to go back") {
  replicated one(2, consistency_mode::bsp);
  pass(one, 200ms, all_three, 20);
  one.death(role::server, 0, 100);
  one.death(role::server, 1, 101); // Chain 0 is lost; chain 2 waits for its second server.
  one.found(3);
  one.server(2, 102, 20);
  CHECK(one.record(2).active.generation == one.record(1).active.generation);
  CHECK_FALSE(one.serves(2));
  CHECK(one.persisted.back().rolling_back);
  pass(one, 1000ms, {{0, 110}, {1, 111}, {2, 102}}, 12);
  CHECK_FALSE(one.persisted.back().rolling_back);
  for (const std::uint32_t chain : {0u, 1u, 2u})
    CHECK(one.record(chain).base_checkpoint == 3);
}

TEST_CASE("bsp: a coordinator that dies while all go back lets them go back again") {
  replicated before(1, consistency_mode::bsp);
  pass(before, 200ms, all_three, 20);
  before.death(role::server, 0, 100);
  before.found(3);
  REQUIRE(before.persisted.back().rolling_back);
  coordinator_fixture after(before.job, {}, state_of(before));
  CHECK(after.persisted.back().generation == generation_id{2});
  for (const std::uint32_t index : {1u, 2u}) {
    const member_id who{role::server, index, {100 + index}};
    after.receive(who, before.reconciled_status(who, 12));
  }
  const servers alive = {{0, 110}, {1, 101}, {2, 102}};
  pass(after, 400ms, alive, 12);
  CHECK(after.finds == 1);
  CHECK(after.desired_of(0, 200).leases.empty());
  after.found(3);
  pass(after, 600ms, alive, 12);
  CHECK(after.record(1).active.generation > before.record(1).proposed->generation);
  CHECK(after.told(event_kind::all_rolled_back, {{"clock", "6"}, {"generation", "2"}}));
  CHECK_FALSE(after.persisted.back().rolling_back);
}

// -- a new coordinator --------------------------------------------------------------------------

/// Reports every server's status as the coordinator `before` told it.
void adopt(coordinator_fixture& after, coordinator_fixture& before, const servers& alive,
           std::uint64_t applied) {
  for (const auto& [index, incarnation] : alive) {
    const member_id who{role::server, index, {incarnation}};
    auto body = before.reconciled_status(who, applied);
    after.receive(who, body);
  }
}

TEST_CASE("a restarted coordinator goes on with the chains that it finds") {
  replicated before(2);
  before.death(role::server, 0, 100); // A change is under way.
  const auto stored = state_of(before).chains;
  REQUIRE(stored[0].proposed);
  coordinator_fixture after(before.job, {}, state_of(before));
  CHECK(after.persisted.back().chains == stored);
  adopt(after, before, {{1, 101}, {2, 102}}, 9);
  const servers alive = {{0, 110}, {1, 101}, {2, 102}};
  pass(after, 1500ms, alive, 9);
  CHECK(after.text_of(0) == "1.101 0.110");
  CHECK(after.text_of(1) == "1.101 2.102");
  CHECK(after.text_of(2) == "2.102 0.110");
  CHECK(after.finds == 0);
  CHECK_FALSE(after.told_rollback());
  CHECK(after.boss->phase() == job_phase::training);
}

TEST_CASE("with logs, a restarted coordinator lets nobody act with less who was heard too early") {
  starting before;
  coordinator_fixture after(before.job, {}, state_of(before));
  adopt(after, before, {{0, 110}, {2, 102}}, 9); // Server 0 lost its log and says so early.
  after.worker(0, 200);
  after.worker(1, 201);
  after.receive({role::server, 1, {112}}, server_status{});
  CHECK(after.text_of(0) == "0.100 1.101, then 0.110");
  after.server(1, 112);
  CHECK(after.text_of(0) == "0.100 1.101, then 1.112");
}

TEST_CASE("a member that was never heard since the restart is silent, and dead in the end") {
  for (const std::uint32_t replicas : {1u, 2u}) {
    CAPTURE(replicas);
    replicated before(replicas);
    coordinator_fixture after(before.job, {}, state_of(before));
    const servers alive = {{1, 101}, {2, 102}};
    adopt(after, before, alive, 9);
    pass(after, 4900ms, alive, 9);
    CHECK(after.text_of(0) == (replicas == 1 ? "0.100" : "1.101"));
    CHECK(after.finds == 0);
    pass(after, 300ms, alive, 9);
    CHECK(after.finds == (replicas == 1 ? 1 : 0));
    if (replicas == 1)
      after.found(3);
    pass(after, 8000ms, alive, 9); // Server 0 is no longer expected.
    CHECK(after.text_of(0) == (replicas == 1 ? "1.101" : "1.101 2.102"));
    CHECK(after.told(event_kind::server_lost,
                     {{"member", "server 0"}, {"reason", "silent since the coordinator restarted"}})
          == (replicas == 1));
    if (replicas == 1) { // Others have its work: it is sent home when it comes at last.
      after.server(0, 100);
      CHECK(after.all_desired(role::server, 0, 100).stop);
      CHECK_FALSE(after.told(event_kind::member_joined, {{"member", "server 0"}}));
    }
  }
}

TEST_CASE("the next start takes the place of an initial member that died with its coordinator") {
  coordinator_fixture before(job_of_replicas(1));
  for (const auto& [index, incarnation] : all_three)
    before.server(index, incarnation);
  REQUIRE(before.text_of(0) == ", then 0.100");
  for (const auto late : {0ms, 20'000ms}) {
    coordinator_fixture after(before.job, {}, state_of(before));
    servers alive = {{1, 101}, {2, 102}};
    adopt(after, before, alive, 0);
    pass(after, late, alive);
    CHECK(after.told(event_kind::members_missing, {{"members", "server 0"}})
          == (late > 0ms)); // As at any start.
    alive[0] = 110;
    pass(after, 5000ms, alive);
    CHECK(after.text_of(0) == "0.110");
    CHECK(after.text_of(1) == "1.101");
    CHECK(after.boss->phase() == job_phase::training);
  }
}

} // namespace
} // namespace troupe::coordinator_replication_test
