// Servers that are added and drained while the job trains.
#include "tests/actors/coordinator_fixture.hpp"

#include <set>

namespace troupe::coordinator_resize_test {
namespace {

using namespace std::chrono_literals;

using servers = std::map<std::uint32_t, std::uint64_t>;
const member_id command{role::observer, 7, {700}};

/// Three servers, three chains, two workers.
struct resized : coordinator_fixture {
  explicit resized(std::uint32_t replicas, storage::coordinator_state stored = {})
      : coordinator_fixture(job_of_replicas(replicas), {}, std::move(stored)) {}

  static resized training(std::uint32_t replicas) {
    resized one{replicas};
    one.pass(500ms);
    REQUIRE(one.boss->phase() == job_phase::training);
    return one;
  }

  /// Lets `time` pass while all `alive` servers and both workers report. A server that is told to
  /// stop stops.
  void pass(std::chrono::milliseconds time) {
    for (auto step = 0ms; step < time; step += 100ms) {
      tick(100ms);
      const auto present = alive;
      for (const auto& [index, incarnation] : present) {
        server(index, incarnation, 5);
        if (last.contains({role::server, index, {incarnation}})
            && all_desired(role::server, index, incarnation).stop)
          alive.erase(index);
      }
      worker(0, 200);
      worker(1, 201);
    }
  }

  void wanted(resize what, const member_id& from = command) {
    observer_status body;
    body.resize = std::move(what);
    receive(from, std::move(body));
  }
  void kill(std::uint32_t index) {
    death(role::server, index, alive.at(index));
    alive.erase(index);
  }

  const job_status& seen() { return std::get<job_status>(last.at(command).body); }
  std::string rejection() {
    const auto& answer = last.at(command);
    return answer.stop && answer.failed ? answer.failed->text : "";
  }
  std::string slots() {
    std::string all;
    auto known = persisted.back().servers;
    if (known.empty()) // The servers of the job's start.
      known = {{0}, {1}, {2}};
    for (const auto& x : known)
      all += std::to_string(x.value) + (persisted.back().draining.contains(x) ? "- " : " ");
    return all;
  }
  std::size_t load(std::uint32_t index) {
    return static_cast<std::size_t>(
      std::ranges::count_if(persisted.back().chains, [&](const chain_metadata& x) {
        return std::ranges::find(x.active.members, index, &member_id::index)
               != x.active.members.end();
      }));
  }

  servers alive = {{0, 100}, {1, 101}, {2, 102}};
};

} // namespace

TEST_CASE("a server that is added is waited for, and then gets its share") {
  auto one = resized::training(2);
  one.wanted({{{3}}, {}});
  CHECK(one.slots() == "0 1 2 3 ");
  CHECK(one.seen().servers == std::vector<server_id>{{0}, {1}, {2}, {3}});
  CHECK(one.told(event_kind::server_added, {{"member", "server 3"}}));
  CHECK(std::ranges::any_of(one.seen().members, [](const member_status& x) {
    return x.member == member_id{role::server, 3, {}} && x.state == member_state::absent;
  }));
  one.alive[3] = 103;
  one.pass(2000ms);
  one.wanted({{{3}}, {}});
  CHECK(one.load(3) == 1);
  CHECK(one.told(event_kind::server_placed, {{"member", "server 3"}, {"shards", "1"}}));
  CHECK_FALSE(one.told_rollback());
  CHECK(std::ranges::any_of(one.seen().members, [](const member_status& x) {
    return x.member == member_id{role::server, 3, {103}} && x.state == member_state::active;
  }));
}

TEST_CASE("of several that are added none has its share before all have come, or took too long") {
  for (const bool comes : {true, false}) {
    CAPTURE(comes);
    auto one = resized::training(2);
    one.wanted({{{3}, {4}}, {}});
    one.alive[3] = 103;
    one.pass(2000ms);
    CHECK_FALSE(one.told(event_kind::server_placed));
    if (comes)
      one.alive[4] = 104;
    one.pass(comes ? 2000ms : 10'000ms);
    CHECK(one.told(event_kind::server_placed, {{"member", "server 3"}, {"shards", "1"}}));
    CHECK(one.told(event_kind::server_placed, {{"member", "server 4"}, {"shards", "1"}}) == comes);
  }
}

TEST_CASE("where chains are too few one that is added is ready without any") {
  auto one = resized::training(1);
  one.wanted({{{3}}, {}});
  one.alive[3] = 103;
  one.pass(500ms);
  CHECK(one.load(3) == 0);
  CHECK(one.told(event_kind::server_idle, {{"member", "server 3"}}));
}

TEST_CASE("a drained server hands its chains over, is told to end, and is forgotten") {
  for (const std::uint32_t replicas : {1u, 2u}) {
    CAPTURE(replicas);
    auto one = resized::training(replicas);
    one.wanted({{}, {{0}}});
    CHECK(one.slots() == "0- 1 2 ");
    CHECK(one.seen().draining == std::vector<server_id>{{0}});
    CHECK_FALSE(one.all_desired(role::server, 0, 100).stop);
    one.pass(3000ms);
    CHECK(one.slots() == "1 2 ");
    CHECK(one.load(0) == 0);
    const auto& last_words = one.all_desired(role::server, 0, 100);
    CHECK(last_words.stop);
    CHECK_FALSE(last_words.failed);
    CHECK(one.times_told(event_kind::server_drained, {{"member", "server 0"}}) == 1);
    CHECK_FALSE(one.told_rollback());
    CHECK_FALSE(one.told_loss());
    one.wanted({});
    CHECK(one.seen().servers == std::vector<server_id>{{1}, {2}});
    CHECK(std::ranges::none_of(one.seen().members, [](const member_status& x) {
      return x.member.role == role::server && x.member.index == 0;
    }));
  }
}

TEST_CASE("one that did not hear that it is to end is told again") {
  auto one = resized::training(1);
  one.wanted({{}, {{0}}});
  one.pass(3000ms);
  const auto before = one.sent.at({role::server, 0, {100}});
  one.receive({role::server, 0, {100}}, server_status{});
  CHECK(one.sent.at({role::server, 0, {100}}) == before + 1);
  CHECK(one.all_desired(role::server, 0, 100).stop);
  CHECK(one.slots() == "1 2 ");
}

TEST_CASE("a wish that comes again is not another one") {
  auto one = resized::training(2);
  const resize wanted{{{3}}, {{0}}};
  one.wanted(wanted);
  one.alive[3] = 103;
  one.pass(1000ms);
  one.wanted(wanted);
  one.pass(3000ms);
  one.wanted(wanted); // Server 0 has left; a new wish to drain it would be refused.
  CHECK(one.rejection().empty());
  CHECK(one.slots() == "1 2 3 ");
  CHECK(one.times_told(event_kind::server_added, {{"member", "server 3"}}) == 1);
  CHECK(one.times_told(event_kind::server_draining, {{"member", "server 0"}}) == 1);
}

TEST_CASE("what would leave too few is refused, to who asked, and changes nothing") {
  auto one = resized::training(2);
  const auto before = one.persisted.size();
  const std::pair<resize, std::string> cases[] = {
    {{{}, {{0}, {1}}}, "cannot drain: one server would be left, and each chain has 2 replicas"},
    {{{}, {{0}, {1}, {2}}}, "cannot drain: no server would be left"},
    {{{}, {{9}}}, "cannot drain server 9: the job has no such server"},
    {{{{servers_max}}, {}}, "cannot add server 4096: a job has servers 0 to 4095"},
  };
  std::uint64_t incarnation = 700;
  for (const auto& [what, why] : cases) {
    CAPTURE(why);
    const member_id from{role::observer, 7, {++incarnation}};
    for (int times = 0; times < 2; ++times) {
      one.wanted(what, from);
      CHECK(one.last.at(from).stop);
      CHECK(one.last.at(from).failed.value().text == why);
    }
  }
  CHECK(one.persisted.size() == before);
  CHECK(one.boss->phase() == job_phase::training);
  one.wanted({{}, {{0}}});
  const member_id other{role::observer, 8, {800}};
  one.wanted({{}, {{1}}}, other);
  CHECK(one.last.at(other).failed.value().text.starts_with("cannot drain: one server"));
  CHECK(one.rejection().empty());
}

TEST_CASE("one that is added again stays, or comes back") {
  auto one = resized::training(2);
  one.wanted({{}, {{0}}});
  one.wanted({{{0}}, {}});
  CHECK(one.slots() == "0 1 2 ");
  CHECK(one.told(event_kind::drain_cancelled, {{"member", "server 0"}}));
  one.pass(2000ms);
  CHECK(one.load(0) == 2);
  one.wanted({{}, {{0}}});
  one.pass(3000ms);
  CHECK(one.slots() == "1 2 ");
  one.alive[0] = 110; // Another host may bring the server back.
  one.pass(3000ms);
  CHECK(one.slots() == "0 1 2 ");
  CHECK(one.load(0) == 2);
}

TEST_CASE("a coordinator that starts again in the middle of a drain goes on with it") {
  for (const bool is_heard_again : {true, false}) {
    CAPTURE(is_heard_again);
    auto before = resized::training(2);
    before.wanted({{{3}}, {{0}}});
    resized after{2, state_of(before)};
    after.alive[3] = 103;
    for (const auto& [index, incarnation] : before.alive) {
      const member_id who{role::server, index, {incarnation}};
      if (index != 0 || is_heard_again)
        after.receive(who, before.reconciled_status(who, 5));
    }
    if (!is_heard_again)
      after.alive.erase(0);
    after.wanted({{{3}}, {{0}}}); // The coordinator waits until it knows its members.
    after.pass(4900ms);
    CHECK(after.told(event_kind::server_drained, {{"member", "server 0"}}) == is_heard_again);
    after.pass(6000ms);
    CHECK(after.slots() == "1 2 3 ");
    CHECK(after.load(3) >= 1);
    CHECK_FALSE(after.told_rollback());
  }
}

TEST_CASE("a drained server that dies is not waited for, and what was its own goes to others") {
  for (const std::uint32_t replicas : {1u, 2u}) {
    CAPTURE(replicas);
    auto one = resized::training(replicas);
    one.wanted({{}, {{0}}});
    one.kill(0);
    one.found(7);
    one.pass(2000ms);
    CHECK(one.slots() == "1 2 ");
    CHECK(one.load(1) + one.load(2) == 3 * replicas);
    CHECK(one.told_rollback() == (replicas == 1));
  }
}

TEST_CASE("the servers of another job that were stored do not count") {
  storage::coordinator_state stored;
  stored.term = 3;
  stored.job = 1;
  stored.servers = {{4}, {5}};
  stored.draining = {{0}};
  resized one{1, stored};
  CHECK(one.persisted.back().servers.empty());
  one.pass(500ms);
  CHECK(one.load(0) == 1);
}

} // namespace troupe::coordinator_resize_test
