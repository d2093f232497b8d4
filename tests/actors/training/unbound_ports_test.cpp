#include "actors/training/port_room.hpp"

#include "doctest/doctest.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace unbound_ports_test {

using namespace troupe;

struct no_links final : lane_links {
  void connect(lane_link, const member_address&) override {}
  void send(lane_link, channel_message) override {}
  void refuse(lane_link, const failure&) override {}
  void close(lane_link) override {}
};

TEST_CASE("events_wait_until_the_ports_of_the_member_are_bound") {
  const member_id worker{role::worker, 0, incarnation_id{1}};
  const member_id sender{role::actor, 0, incarnation_id{2}};
  in<int> came{"came"};
  std::vector<std::string> seen;
  came.joined = [&](std::uint32_t peer) { seen.push_back("joined " + std::to_string(peer)); };
  came.take = [](parcel<int>&&) {};
  port_room room{
    worker,
    {{.channel = "a>b", .port = "", .head = in<int>::type(), .peers = {{role::actor, 0, {}}}}}};
  room.begin({.clock = [] { return time_point{0}; }, .wake = [] {}, .fail = [](const failure&) {}},
             std::make_shared<no_links>());
  const auto link = room.accepted(sender);
  room.received(link, channel_open{"a>b", 1, in<int>::type(), channel_window_default});
  room.deliver();
  CHECK(seen.empty());
  room.bind(0, came);
  room.deliver();
  CHECK(seen == std::vector<std::string>{"joined 0"});
}

} // namespace unbound_ports_test
