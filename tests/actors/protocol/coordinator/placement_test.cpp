#include "actors/protocol/coordinator/placement.hpp"

#include "doctest/doctest.h"

#include <string>

namespace troupe::placement_test {

namespace {

using namespace std::chrono_literals;

constexpr auto seal_time = 3000ms;

member_id server(std::uint32_t index, std::uint64_t start = 1) {
  return {role::server, index, {start}};
}

std::string text_of(const chain_config& config) {
  std::string text = std::to_string(config.config.value) + ":";
  const auto add = [&](const member_id& who) {
    text += std::to_string(who.index);
    if (who.incarnation.value > 1)
      text += "." + std::to_string(who.incarnation.value);
  };
  for (const member_id& each : config.members) {
    text += " ";
    add(each);
  }
  if (config.joiner) {
    text += " +";
    add(*config.joiner);
  }
  return text;
}

std::string text_of(const chain_metadata& chain) {
  return text_of(chain.active) + (chain.proposed ? ", then " + text_of(*chain.proposed) : "");
}

/// One chain of up to three replicas, begun by servers 0 and 1.
struct fixture {
  explicit fixture(std::uint32_t replicas = 3)
      : decide({replicas, seal_time}, {{{{1}, {}, {server(0), server(1)}, {}}, 0, {}}}) {
    for (const std::uint32_t each : {0u, 1u})
      hear(server(each), 1);
  }

  void hear(const member_id& who, std::uint64_t sealed, bool joiner_synced = false,
            std::uint64_t generation = 0, bool complete = true) {
    decide.heard(
      who, {{{generation}, decide.records()[0].active.config, {sealed}, complete, joiner_synced}});
  }
  void hear_stalled(const member_id& who, std::uint64_t sealed) {
    decide.heard(who, {{{}, decide.records()[0].active.config, {sealed}, true, false, true}});
  }
  void seal(const std::vector<std::uint32_t>& servers, std::uint64_t config) {
    for (const std::uint32_t each : servers)
      hear(server(each), config);
  }
  /// Returns the active and the proposed configuration, after all decisions.
  std::string text() {
    while (decide.decide(now)) {
    }
    return text_of(decide.records()[0]);
  }

  placement decide;
  time_point now{0};
};

TEST_CASE("with nobody to add and nobody lost nothing changes") {
  fixture f;
  CHECK_FALSE(f.decide.decide(f.now));
  CHECK(f.text() == "1: 0 1");
}

TEST_CASE("a chain that is too short gets a joiner once all have sealed") {
  fixture f;
  f.hear(server(2), 1);
  CHECK(f.text() == "1: 0 1, then 2: 0 1 +2");
  f.hear(server(0), 2);
  CHECK(f.text() == "1: 0 1, then 2: 0 1 +2");
  f.hear(server(1), 2);
  CHECK(f.text() == "2: 0 1 +2");
}

TEST_CASE("a joiner becomes the tail when the tail waits for it, and itself has sealed") {
  fixture f;
  f.hear(server(2), 1);
  f.text();
  f.hear(server(0), 2);
  f.hear(server(1), 2);
  REQUIRE(f.text() == "2: 0 1 +2");
  f.hear(server(0), 2, true); // Only the tail's status counts.
  CHECK(f.text() == "2: 0 1 +2");
  f.hear(server(1), 2, true);
  CHECK(f.text() == "2: 0 1 +2, then 3: 0 1 2");
  f.hear(server(0), 3);
  f.hear(server(1), 3, true);
  CHECK(f.text() == "2: 0 1 +2, then 3: 0 1 2");
  f.hear(server(2), 3);
  CHECK(f.text() == "3: 0 1 2");
}

TEST_CASE("the dead are taken out, and need not seal") {
  fixture f;
  f.decide.dead(server(0));
  CHECK(f.text() == "1: 0 1, then 2: 1");
  f.hear(server(1), 2);
  CHECK(f.text() == "2: 1");
}

TEST_CASE("a dead one never comes back, its successor has to join") {
  fixture f;
  f.decide.dead(server(0));
  f.hear(server(0), 9);
  f.hear(server(0, 2), 1);
  CHECK(f.text() == "1: 0 1, then 2: 1 +0.2");
}

TEST_CASE("who was silent and is heard again in time stays") {
  fixture f;
  f.decide.silent(server(0));
  CHECK(f.text() == "1: 0 1, then 2: 1");
  f.hear(server(0), 1);
  CHECK(f.text() == "1: 0 1, then 3: 0 1");
  f.hear(server(1), 3);
  CHECK(f.text() == "1: 0 1, then 3: 0 1");
  f.hear(server(0), 3);
  CHECK(f.text() == "3: 0 1");
}

TEST_CASE("who was silent too long joins again") {
  fixture f;
  f.decide.silent(server(0));
  f.text();
  f.hear(server(1), 2);
  REQUIRE(f.text() == "2: 1");
  f.hear(server(0), 1); // The server may join once it knows that it left.
  CHECK(f.text() == "2: 1");
  f.hear(server(0), 2);
  CHECK(f.text() == "2: 1, then 3: 1 +0");
}

TEST_CASE("a proposal that loses a member is taken back to the last active configuration") {
  fixture f;
  f.hear(server(2), 1);
  REQUIRE(f.text() == "1: 0 1, then 2: 0 1 +2");
  f.decide.dead(server(2));
  CHECK(f.text() == "1: 0 1, then 3: 0 1");
  f.decide.dead(server(1));
  CHECK(f.text() == "1: 0 1, then 4: 0");
}

TEST_CASE("a chain without a member that can be reached waits for one") {
  fixture f;
  f.decide.silent(server(0));
  f.decide.silent(server(1));
  f.hear(server(2), 1);
  CHECK(f.text() == "1: 0 1");
  f.hear(server(1), 1);
  CHECK(f.text() == "1: 0 1, then 2: 1 +2");
}

TEST_CASE("a coordinator that starts again goes on with what was persisted") {
  fixture f;
  f.hear(server(2), 1);
  f.text();
  placement next{{3, seal_time}, f.decide.records()};
  for (const std::uint32_t each : {0u, 1u})
    next.heard(server(each), {{{}, {1}, {2}, true, false}});
  next.heard(server(2), {{}});
  CHECK(next.decide({}));
  CHECK(text_of(next.records()[0].active) == "2: 0 1 +2");
}

TEST_CASE("who is drained leaves when another one has joined in its place") {
  fixture f{2};
  f.hear(server(2), 1);
  CHECK(f.decide.drain({{0}}));
  CHECK(f.text() == "1: 0 1, then 2: 0 1 +2");
  f.hear(server(0), 2);
  f.hear(server(1), 2);
  REQUIRE(f.text() == "2: 0 1 +2");
  f.hear(server(1), 2, true);
  CHECK(f.text() == "2: 0 1 +2, then 3: 1 2");
  f.hear(server(1), 3, true);
  f.hear(server(2), 3);
  CHECK(f.text() == "2: 0 1 +2, then 3: 1 2"); // Server 0 still acts in the active configuration.
  f.hear(server(0), 3);
  CHECK(f.text() == "3: 1 2");
}

TEST_CASE("with nobody to take its place, who is drained stays") {
  fixture f{2};
  CHECK(f.decide.drain({{0}}));
  CHECK(f.text() == "1: 0 1");
}

TEST_CASE("a chain is lost when all of its members are dead, and not when they are silent") {
  fixture f;
  f.hear(server(2), 1);
  f.decide.dead(server(0));
  f.decide.silent(server(1));
  CHECK(f.decide.lost_chains().empty());
  f.decide.dead(server(1));
  CHECK(f.decide.lost_chains() == std::vector<std::uint32_t>{0});
}

TEST_CASE("a lost chain begins again from a checkpoint, once its initial members hold that") {
  fixture f{2};
  f.decide.dead(server(0));
  f.decide.dead(server(1));
  CHECK_FALSE(f.decide.begin_again(0, 7)); // No server is alive.
  f.hear(server(2), 1);
  f.hear(server(3), 1);
  REQUIRE(f.decide.begin_again(0, 7));
  CHECK(f.decide.lost_chains().empty());
  CHECK(f.decide.records()[0].base_checkpoint == 7);
  CHECK(f.text() == "1: 0 1, then 2: 2 3");
  f.hear(server(2), 2, false, 1);
  f.hear(server(3), 2); // Server 3 has sealed, but holds no state of the new generation.
  CHECK(f.text() == "1: 0 1, then 2: 2 3");
  f.hear(server(3), 2, false, 1, false); // Server 3 started again and holds no state.
  CHECK(f.text() == "1: 0 1, then 2: 2 3");
  f.decide.dead(server(3));
  CHECK(f.text() == "1: 0 1, then 3: 2");
  f.hear(server(2), 3, false, 1);
  CHECK(f.text() == "3: 2");
  CHECK(f.decide.records()[0].active.generation.value == 1);
}

TEST_CASE("of several servers the one with the least to do joins") {
  const chain_metadata busy{{{1}, {}, {server(0), server(2)}, {}}, 0, {}};
  const chain_metadata low{{{1}, {}, {server(0)}, {}}, 0, {}};
  placement decide{{2, seal_time}, {busy, low}};
  for (const std::uint32_t each : {0u, 2u, 3u})
    decide.heard(server(each), {{{}, {1}, {1}, true, false}, {{}, {1}, {1}, true, false}});
  decide.decide({});
  CHECK(text_of(decide.records()[0].active) == "1: 0 2");
  REQUIRE(decide.records()[1].proposed);
  CHECK(text_of(*decide.records()[1].proposed) == "2: 0 +3");
}

// -- servers that are alive and do not act --

TEST_CASE("who does not seal in time is not trusted, and left out once it is silent") {
  fixture f;
  f.hear(server(2), 1);
  REQUIRE(f.text() == "1: 0 1, then 2: 0 1 +2");
  f.hear(server(0), 2);
  f.now += seal_time - 1ms;
  f.text();
  CHECK(f.decide.is_trusted(server(1)));
  f.now += 1ms;
  CHECK(f.text() == "1: 0 1, then 2: 0 1 +2");
  CHECK(f.decide.is_trusted(server(0)));
  CHECK_FALSE(f.decide.is_trusted(server(1)));
  f.decide.silent(server(1));
  f.hear(server(1), 1); // Sealing configuration 1 no longer suffices.
  REQUIRE(f.text() == "1: 0 1, then 3: 0 +2");
  f.hear(server(1), 3); // Server 1 has sealed too late.
  CHECK(f.text() == "1: 0 1, then 3: 0 +2");
  f.hear(server(0), 3);
  REQUIRE(f.text() == "3: 0 +2");
  CHECK_FALSE(f.decide.is_trusted(server(1)));
  f.hear(server(1), 3);
  CHECK(f.decide.is_trusted(server(1)));
}

TEST_CASE("who seals late, but before it is silent, is trusted again") {
  fixture f;
  f.hear(server(2), 1);
  f.text();
  f.hear(server(0), 2);
  f.now += seal_time;
  f.text();
  REQUIRE_FALSE(f.decide.is_trusted(server(1)));
  f.hear(server(1), 2);
  CHECK(f.text() == "2: 0 1 +2");
  f.hear(server(1), 2);
  CHECK(f.decide.is_trusted(server(1)));
}

TEST_CASE("who has sealed and does not act in what is active is not trusted either") {
  fixture f{2};
  f.decide.heard(server(0), {{{}, {1}, {1}, true, false}});
  f.decide.heard(server(1), {{{}, {0}, {1}, true, false}});
  f.text();
  f.now += seal_time;
  f.text();
  CHECK(f.decide.is_trusted(server(0)));
  CHECK_FALSE(f.decide.is_trusted(server(1)));
}

TEST_CASE("who acts in what is over gets no lease until it has heard of what is active") {
  fixture f;
  f.decide.silent(server(0));
  f.text();
  f.hear(server(1), 2);
  REQUIRE(f.text() == "2: 1");
  f.decide.heard(server(0), {{{}, {1}, {1}, true, false}});
  CHECK_FALSE(f.decide.is_trusted(server(0)));
  f.decide.heard(server(0), {{{}, {1}, {2}, true, false}});
  CHECK(f.decide.is_trusted(server(0)));
}

TEST_CASE("where nobody else is left, who was late gets another chance") {
  fixture f;
  f.decide.dead(server(0));
  REQUIRE(f.text() == "1: 0 1, then 2: 1");
  f.now += seal_time;
  f.text();
  f.decide.silent(server(1));
  f.text();
  f.hear(server(1), 2);
  CHECK(f.text() == "2: 1");
  f.hear(server(1), 2);
  CHECK(f.decide.is_trusted(server(1)));
}

TEST_CASE("of two neighbours that cannot talk the second is left out, where it can do no harm") {
  fixture f{2};
  f.hear(server(2), 1);
  f.hear_stalled(server(0), 1);
  CHECK(f.text() == "1: 0 1, then 2: 0 +2");
  for (const std::uint32_t each : {0u, 1u, 2u})
    f.hear(server(each), 2);
  REQUIRE(f.text() == "2: 0 +2");
  // Without server 2 no server may join, until the two neighbours' time apart is over.
  f.decide.dead(server(2));
  REQUIRE(f.text() == "2: 0 +2, then 3: 0");
  f.hear(server(0), 3);
  f.hear(server(1), 3);
  REQUIRE(f.text() == "3: 0");
  f.now += 9999ms;
  CHECK(f.text() == "3: 0");
  f.now += 1ms;
  CHECK(f.text() == "3: 0, then 4: 0 +1");
}

TEST_CASE("who cannot talk to the tail joins behind another one") {
  fixture f;
  f.decide = placement{{3, seal_time}, {{{{1}, {}, {server(0), server(1), server(2)}, {}}, 0, {}}}};
  f.seal({1, 2}, 1);
  f.hear_stalled(server(0), 1);
  CHECK(f.text() == "1: 0 1 2, then 2: 0 2");
  f.seal({0, 1, 2}, 2);
  CHECK(f.text() == "2: 0 2, then 3: 0 2 +1");
}

TEST_CASE("a member that is stalled because members behind it are stays where it is") {
  fixture f{2};
  f.decide = placement{{3, seal_time}, {{{{1}, {}, {server(0), server(1), server(2)}, {}}, 0, {}}}};
  f.hear(server(2), 1);
  f.hear_stalled(server(0), 1);
  f.hear_stalled(server(1), 1);
  CHECK(f.text() == "1: 0 1 2, then 2: 0 1");
}

TEST_CASE("a joiner that cannot talk to the tail does not join, and the last member stays") {
  fixture f{2};
  f.decide.dead(server(1));
  f.text();
  f.hear(server(0), 2);
  REQUIRE(f.text() == "2: 0");
  f.hear(server(2), 2);
  f.text();
  f.seal({0, 2}, 3);
  REQUIRE(f.text() == "3: 0 +2");
  f.hear_stalled(server(2), 3);
  CHECK(f.text() == "3: 0 +2, then 4: 0");
  f.seal({0, 2}, 4);
  REQUIRE(f.text() == "4: 0");
  f.hear(server(3), 4);
  f.text();
  f.seal({0, 2, 3}, 5);
  REQUIRE(f.text() == "5: 0 +3");
  f.hear_stalled(server(3), 5);
  CHECK(f.text() == "5: 0 +3, then 6: 0");
}

TEST_CASE("who cannot talk to a second one is left out itself") {
  fixture f;
  f.decide = placement{{3, seal_time}, {{{{1}, {}, {server(0), server(1), server(2)}, {}}, 0, {}}}};
  f.seal({0, 1, 2}, 1);
  f.hear_stalled(server(1), 1);
  REQUIRE(f.text() == "1: 0 1 2, then 2: 0 1");
  f.seal({0, 1, 2}, 2);
  REQUIRE(f.text() == "2: 0 1");
  f.hear(server(3), 2);
  f.text();
  f.seal({0, 1, 2, 3}, 3);
  REQUIRE(f.text() == "3: 0 1 +3");
  f.hear_stalled(server(3), 3);
  CHECK(f.text() == "3: 0 1 +3, then 4: 0 +3");
}

TEST_CASE("a stall in an older configuration does not count") {
  fixture f{2};
  f.hear(server(2), 1);
  f.decide.heard(server(0), {{{}, {0}, {1}, true, false, true}});
  CHECK(f.text() == "1: 0 1");
}

TEST_CASE("where servers keep their state, a lost chain begins again with one of them alone") {
  for (const bool alone : {true, false}) {
    CAPTURE(alone);
    fixture f;
    f.decide = placement{{.replicas = 3, .seal_time = seal_time, .restart_from_one_replica = alone},
                         {{{{1}, {}, {server(0), server(1)}, {}}, 0, {}}}};
    for (const std::uint32_t each : {0u, 1u}) {
      f.decide.dead(server(each));
      f.hear(server(each, 2), 1);
    }
    f.hear(server(2), 1);
    CHECK(f.decide.begin_again(0, 7));
    CHECK(f.text() == (alone ? "1: 0 1, then 2: 0.2" : "1: 0 1, then 2: 0.2 1.2 2"));
  }
  // In a new chain no server can have kept any state.
  placement fresh{{.replicas = 2, .restart_from_one_replica = true}, {{}}};
  for (const std::uint32_t each : {0u, 1u})
    fresh.heard(server(each), {{}});
  CHECK(fresh.begin_again(0, 0));
  CHECK(text_of(fresh.records()[0]) == "0:, then 1: 0 1");
}

TEST_CASE("a chain that is lost goes on with what a server kept that is to leave") {
  for (const bool kept : {true, false}) {
    placement decide{{.replicas = 1, .seal_time = seal_time, .restart_from_one_replica = kept},
                     {{{{1}, {}, {server(0)}, {}}, 0, {}}}};
    for (const std::uint32_t each : {0U, 1U})
      decide.heard(server(each), {{{}, {1}, {1}, true, false}});
    REQUIRE(decide.drain({{0}}));
    decide.dead(server(0));
    decide.heard(server(0, 2), {{{}, {}, {1}, false, false}});
    REQUIRE(decide.begin_again(0, 7));
    CHECK(decide.records()[0].proposed->members == std::vector{kept ? server(0, 2) : server(1)});
  }
}

TEST_CASE("of the dead that nobody asks about, one a server is remembered") {
  fixture f;
  f.decide.dead(server(5, 1));
  f.decide.dead(server(0));
  f.decide.dead(server(5, 2));
  f.decide.dead(server(0, 2));
  CHECK_FALSE(f.decide.is_dead(server(5, 1)));
  CHECK(f.decide.is_dead(server(5, 2)));
  CHECK(f.decide.is_dead(server(0)));
}

TEST_CASE("the last server cannot be drained, and one that is drained is empty in the end") {
  fixture f{1};
  const auto refused = f.decide.drain({{0}, {1}});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().text == "cannot drain: no other server is there to take over");
  CHECK(f.decide.drain({{0}}));
  CHECK_FALSE(f.decide.is_empty({0}));
  REQUIRE(f.text() == "1: 0 1, then 2: 1");
  f.hear(server(1), 2);
  CHECK_FALSE(f.decide.is_empty({0}));
  f.text();
  f.hear(server(0), 2);
  CHECK(f.text() == "2: 1");
  CHECK(f.decide.is_empty({0}));
}

} // namespace

} // namespace troupe::placement_test
