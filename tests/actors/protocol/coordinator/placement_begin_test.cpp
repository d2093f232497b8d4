// Tests which server starts the next generation of a chain from the state that servers have kept.
#include "actors/protocol/coordinator/placement.hpp"

#include "doctest/doctest.h"

#include <string>

namespace troupe::placement_begin_test {

namespace {

member_id server(std::uint32_t index, std::uint64_t start = 1) {
  return {role::server, index, {start}};
}

/// A chain whose servers have all died. They are back, and two more servers are there.
struct fixture {
  explicit fixture(const std::vector<std::uint32_t>& homes, bool one_restarts = true)
      : decide({.replicas = 2, .restart_from_one_replica = one_restarts}, {record_of(homes)}) {
    for (const auto each : homes) {
      decide.dead(server(each));
      hear(server(each, 2));
    }
    hear(server(8));
    hear(server(9));
  }

  static chain_metadata record_of(const std::vector<std::uint32_t>& homes) {
    chain_config active{{1}, {}, {}, {}};
    for (const auto each : homes)
      active.members.push_back(server(each));
    return {active, 0, {}};
  }

  void hear(const member_id& who) { decide.heard(who, {{{}, {}, {1}, false, false}}); }
  bool begin() { return decide.begin_again(0, 7); }
  /// Returns generation and initial members, after all decisions: "2: 0.2 1.2".
  std::string begun() {
    while (decide.decide({})) {
    }
    const auto& next = *decide.records()[0].proposed;
    std::string text = std::to_string(next.generation.value) + ":";
    for (const auto& who : next.members)
      text += " " + std::to_string(who.index) + "." + std::to_string(who.incarnation.value);
    return text;
  }

  placement decide;
};

TEST_CASE(
  "whoever takes the place of one who goes on with what it kept begins another generation") {
  for (const bool one : {true, false}) {
    CAPTURE(one);
    fixture f{{0}, one};
    REQUIRE(f.begin());
    REQUIRE(f.begun() == (one ? "1: 0.2" : "1: 0.2 8.1"));
    f.decide.dead(server(0, 2));
    CHECK(f.begun() == (one ? "2: 8.1" : "1: 8.1 9.1"));
  }
}

TEST_CASE("an initial member that dies is waited for while it is expected to come back") {
  fixture f{{0}};
  REQUIRE(f.begin());
  f.decide.dead(server(0, 2));
  f.decide.expect({{0}});
  CHECK(f.begun() == "1: 0.2");
  SUBCASE("it comes") {
    f.hear(server(0, 3));
    CHECK(f.begun() == "2: 0.3");
  }
  SUBCASE("it does not, and nobody has what it kept") {
    f.decide.expect({});
    CHECK(f.begun() == "2: 8.1");
  }
}

TEST_CASE("an initial member that is silent is waited for until it is dead") {
  fixture f{{0}};
  REQUIRE(f.begin());
  f.decide.silent(server(0, 2));
  CHECK(f.begun() == "1: 0.2");
  f.hear(server(0, 2));
  CHECK(f.begun() == "1: 0.2");
  f.decide.silent(server(0, 2));
  f.decide.dead(server(0, 2));
  CHECK(f.begun() == "2: 8.1");
}

TEST_CASE("none is passed over that is silent and may have kept something") {
  fixture f{{0}};
  f.decide.silent(server(0, 2));
  CHECK_FALSE(f.begin());
  f.hear(server(0, 2));
  CHECK(f.begin());
}

TEST_CASE("another member of the lost chain takes the place of an initial member") {
  fixture f{{0, 1}};
  REQUIRE(f.begin());
  REQUIRE(f.begun() == "1: 0.2");
  f.decide.dead(server(0, 2));
  CHECK(f.begun() == "2: 1.2");
  f.decide.dead(server(1, 2));
  REQUIRE(f.begun() == "3: 8.1");
  f.hear(server(1, 3)); // Its kept state counts, even after server 8 was chosen.
  REQUIRE(f.begin());
  CHECK(f.begun() == "4: 1.3");
}

TEST_CASE("who begins with less than the chain had leaves it to one that may have more") {
  fixture f{{0, 1}};
  REQUIRE(f.begin());
  REQUIRE(f.begun() == "1: 0.2");
  f.decide.has_partial_state(0, server(0, 2));
  CHECK_FALSE(f.decide.accepts_partial_state(0));
  CHECK(f.begun() == "2: 1.2");
  CHECK_FALSE(f.decide.accepts_partial_state(0));
  f.decide.has_partial_state(0, server(1, 2));
  CHECK(f.decide.accepts_partial_state(0));
  CHECK(f.begun() == "2: 1.2");
}

TEST_CASE("who begins with less does not act before nobody is there that may have more") {
  fixture f{{0, 1}};
  REQUIRE(f.begin());
  REQUIRE(f.begun() == "1: 0.2");
  f.decide.dead(server(1, 2));
  f.decide.expect({{1}});
  f.decide.heard(server(0, 2), {{{1}, {}, {2}, true, false}});
  f.decide.has_partial_state(0, server(0, 2));
  CHECK(f.begun() == "1: 0.2");
  CHECK_FALSE(f.decide.accepts_partial_state(0));
  f.decide.expect({}); // Server 1 does not come back.
  CHECK(f.decide.accepts_partial_state(0));
  REQUIRE(f.decide.decide({}));
  CHECK(f.decide.records()[0].active.members == std::vector{server(0, 2)});
}

} // namespace

} // namespace troupe::placement_begin_test
