// Chains of a whole cluster: how they start, go back together, and spread over the servers.
#include "actors/protocol/coordinator/placement.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <random>
#include <string>

namespace troupe::placement_balance_test {

namespace {

using namespace std::chrono_literals;

member_id server(std::uint32_t index, std::uint64_t start = 1) {
  return {role::server, index, {start}};
}

std::string text_of(const chain_config& config) {
  std::string text;
  for (const member_id& each : config.members)
    text += (text.empty() ? "" : " ") + std::to_string(each.index);
  return text + (config.joiner ? " +" + std::to_string(config.joiner->index) : "");
}

/// Servers that follow every record at once.
struct cluster {
  cluster(std::uint32_t members, std::vector<chain_metadata> stored)
      : decide({members, 3s}, std::move(stored)), replicas(members) {}
  cluster(std::uint32_t members, std::size_t chains)
      : cluster(members, std::vector<chain_metadata>(chains)) {}

  void start(std::uint32_t index) {
    alive.push_back(server(index));
    hear();
  }
  void hear() {
    for (const member_id& each : alive) {
      std::vector<chain_status> all;
      for (const auto& [active, base_checkpoint, proposed] : decide.records()) {
        const auto& newest = proposed ? *proposed : active;
        all.push_back({newest.generation, active.config, newest.config, true, true});
      }
      decide.heard(each, std::move(all));
    }
  }
  void found() {
    for (const std::uint32_t each : decide.lost_chains())
      decide.begin_again(each, 0);
  }
  /// Decides until no record changes. Fails if that takes 1000 rounds, or if a move begins beside
  /// another one.
  void settle() {
    // Moves that a withdrawn drain has begun may go on.
    std::size_t moving_before = decide.records().size();
    for (int rounds = 0; rounds < 1000; ++rounds) {
      std::size_t moving = 0;
      for (const chain_metadata& each : decide.records()) {
        const auto is_move = [&](const chain_config& x) {
          return x.joiner && x.members.size() >= replicas;
        };
        moving += is_move(each.proposed ? *each.proposed : each.active) ? 1 : 0;
        moves += is_move(each.active) && !each.proposed ? 1 : 0;
      }
      REQUIRE(moving <= std::max<std::size_t>(moving_before, 1));
      moving_before = moving;
      hear();
      if (!decide.decide({}))
        return;
    }
    FAIL("it does not come to rest");
  }
  std::string text() const {
    std::string all;
    for (const chain_metadata& each : decide.records())
      all += (all.empty() ? "" : ", ") + text_of(each.active);
    return all;
  }
  std::size_t load(std::uint32_t index) const {
    return static_cast<std::size_t>(std::ranges::count_if(decide.records(), [&](auto& x) {
      return std::ranges::find(x.active.members, server(index)) != x.active.members.end();
    }));
  }
  std::size_t heads(std::uint32_t index) const {
    return static_cast<std::size_t>(std::ranges::count_if(
      decide.records(), [&](auto& x) { return x.active.members.front() == server(index); }));
  }
  std::size_t spread(std::size_t (cluster::*of)(std::uint32_t) const = &cluster::load) const {
    std::vector<std::size_t> all;
    for (const member_id& each : alive)
      all.push_back((this->*of)(each.index));
    return *std::ranges::max_element(all) - *std::ranges::min_element(all);
  }

  placement decide;
  std::size_t replicas;
  std::size_t moves = 0;
  std::vector<member_id> alive;
};

TEST_CASE("chains start on servers in a row") {
  cluster all{2, 5};
  for (std::uint32_t i = 0; i < 4; ++i)
    all.start(i);
  REQUIRE(all.decide.lost_chains().size() == 5);
  all.found();
  CHECK(all.decide.lost_chains().empty());
  CHECK(all.decide.records()[0].active.config.value == 0);
  all.settle();
  CHECK(all.text() == "0 1, 1 2, 2 3, 3 0, 0 1");
  CHECK(all.decide.records()[4].active.generation.value == 1);
  CHECK(all.decide.records()[4].active.config.value == 1);
}

TEST_CASE("no chain starts before the servers of its place are there, while these are expected") {
  cluster all{2, 3};
  all.decide.expect({{0}, {1}, {2}});
  all.start(0);
  all.start(1);
  all.found();
  all.settle();
  CHECK(all.text() == "0 1, , ");
  all.start(2);
  all.found();
  all.settle();
  CHECK(all.text() == "0 1, 1 2, 2 0");
}

TEST_CASE("with fewer servers than replicas chains are short, and fill up later") {
  cluster all{2, 2};
  all.start(4);
  all.found();
  all.settle();
  CHECK(all.text() == "4, 4");
  all.start(7);
  all.settle();
  CHECK(all.text() == "4 7, 4 7");
}

TEST_CASE("a chain that is not lost goes back too, once all that act in it have sealed") {
  cluster all{2, 1};
  all.start(0);
  all.start(1);
  all.found();
  all.settle();
  REQUIRE(all.decide.begin_again(0, 7));
  const auto& record = all.decide.records()[0];
  CHECK(record.base_checkpoint == 7);
  CHECK(text_of(*record.proposed) == "0 1");
  all.decide.silent(server(1));
  all.alive = {server(2)};
  all.hear();
  all.decide.decide({});
  REQUIRE(text_of(*record.proposed) == "0 2");
  all.hear();
  all.decide.decide({});
  CHECK(record.active.generation.value == 1); // Server 0 has not sealed.
  all.alive.push_back(server(0));
  all.hear();
  all.decide.decide({});
  CHECK(record.active.generation.value == 2);
  CHECK(all.text() == "0 2");
}

TEST_CASE("each beginning takes the place of the one under way, in a generation of its own") {
  cluster all{1, 1};
  all.start(0);
  const auto& record = all.decide.records()[0];
  std::uint64_t number = 0;
  for (const std::uint64_t checkpoint : {7, 7, 6}) {
    REQUIRE(all.decide.begin_again(0, checkpoint));
    CHECK(record.proposed->generation.value == ++number);
    CHECK(record.proposed->config.value == number);
    CHECK(record.base_checkpoint == checkpoint);
  }
}

TEST_CASE("a lost chain waits for its server while that is expected, and then does not") {
  for (const bool comes : {true, false}) {
    CAPTURE(comes);
    cluster all{1, 2};
    all.start(0);
    all.start(1);
    all.found();
    all.settle();
    REQUIRE(all.text() == "0, 1");
    all.decide.dead(server(1));
    all.decide.expect({{1}});
    all.alive = {server(0)};
    CHECK_FALSE(all.decide.begin_again(1, 0));
    if (comes)
      all.alive.push_back(server(1, 2));
    else
      all.decide.expect({});
    all.hear();
    REQUIRE(all.decide.begin_again(1, 0));
    all.settle();
    CHECK(all.text() == (comes ? "0, 1" : "0, 0"));
  }
}

TEST_CASE("a chain that is too short waits for the one with the least to do, if that is expected") {
  cluster all{2, 3};
  for (std::uint32_t i = 0; i < 3; ++i)
    all.start(i);
  all.found();
  all.settle();
  all.decide.dead(server(0));
  all.decide.expect({{0}});
  all.alive = {server(1), server(2)};
  all.settle();
  CHECK(all.text() == "1, 1 2, 2");
  SUBCASE("and joins") {
    all.alive.push_back(server(0, 2));
    all.settle();
    CHECK(all.text() == "1 0, 1 2, 2 0");
  }
  SUBCASE("and does not come") {
    all.decide.expect({});
    all.settle();
    CHECK(all.text() == "1 2, 1 2, 2 1");
  }
}

TEST_CASE("chains move to servers that are added, no more of them than have to") {
  cluster all{2, 6};
  for (std::uint32_t i = 0; i < 2; ++i)
    all.start(i);
  all.found();
  all.settle();
  for (std::uint32_t i = 2; i < 4; ++i)
    all.start(i);
  all.settle();
  CHECK(all.spread() == 0);
  CHECK(all.moves == 6);
}

TEST_CASE("12 chains stay even from 2 servers to 6, and from these to 3") {
  for (const std::uint32_t replicas : {1u, 2u}) {
    CAPTURE(replicas);
    cluster all{replicas, 12};
    for (std::uint32_t i = 0; i < 2; ++i)
      all.start(i);
    all.found();
    all.settle();
    for (std::uint32_t i = 2; i < 6; ++i)
      all.start(i);
    all.settle();
    CHECK(all.spread() == 0);
    CHECK(all.spread(&cluster::heads) <= (replicas == 1 ? 0 : 2)); // Heads are even up to ties.
    REQUIRE(all.decide.drain({{0}, {1}, {2}}));
    for (int rounds = 0; rounds < 100; ++rounds) { // All drained chains move at the same time.
      all.hear();
      all.decide.decide({});
    }
    all.settle();
    for (std::uint32_t i = 0; i < 3; ++i)
      CHECK(all.decide.is_empty({i}));
    all.alive.erase(all.alive.begin(), all.alive.begin() + 3);
    CHECK(all.spread() == 0);
    CHECK(all.spread(&cluster::heads) <= (replicas == 1 ? 0 : 4));
  }
}

TEST_CASE(
  "of two that have as much to do, the head leaves where the other one leads fewer chains") {
  const chain_metadata one{{{1}, {}, {server(0), server(1)}, {}}, 0, {}};
  cluster all{2, std::vector(4, one)};
  for (std::uint32_t i = 0; i < 3; ++i)
    all.start(i);
  all.settle();
  CHECK(all.text() == "1 2, 0 2, 0 1, 0 1");
}

TEST_CASE("from wherever servers come and go, chains come to rest, spread evenly and full") {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random{seed};
    const auto pick = [&](std::size_t n) { return static_cast<std::uint32_t>(random() % n); };
    const std::uint32_t replicas = 1 + pick(3);
    cluster all{replicas, 1 + pick(12)};
    std::uint32_t next = 0;
    while (next < replicas + 1)
      all.start(next++);
    all.found();
    for (int i = 0; i < 30; ++i) {
      const auto victim = pick(all.alive.size());
      const auto what = pick(3);
      if (what == 0) {
        all.start(next++);
      } else if (what == 1 && all.alive.size() > replicas) {
        all.decide.dead(all.alive[victim]);
        all.alive.erase(all.alive.begin() + victim);
      } else {
        (void)all.decide.drain({{all.alive[victim].index}});
      }
      all.hear();
      if (pick(2) == 0)
        all.decide.decide({});
      all.found();
    }
    REQUIRE(all.decide.drain({}));
    all.settle();
    CHECK(all.spread() <= 1);
    for (const chain_metadata& each : all.decide.records())
      CHECK(each.active.members.size() == replicas);
  }
}

} // namespace

} // namespace troupe::placement_balance_test
