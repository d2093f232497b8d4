#include "actors/training/port_room.hpp"

#include "doctest/doctest.h"

#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace port_room_test {

using namespace troupe;
using namespace std::chrono_literals;

namespace {

const member_id player{role::actor, 3, {7}}, learner{role::worker, 0, {9}};

/// Joins two rooms: what one sends on a link, the other receives.
struct joint final : lane_links {
  void connect(lane_link link, const member_address&) override { connected.push_back(link); }
  void send(lane_link, channel_message what) override { sent.push_back(std::move(what)); }
  void refuse(lane_link, const failure&) override {}
  void close(lane_link) override {}

  std::vector<lane_link> connected;
  std::vector<channel_message> sent;
};

/// One end of a channel with a window of 2, and what its member says.
struct one_end {
  one_end(const member_id& self, const member_id& peer, port_base& port) {
    channel_end end;
    end.channel = "players>learners";
    end.sends = port.what() == port_base::kind::out;
    end.head = in<int>::type();
    end.peers = {{peer.role, peer.index, {}}};
    end.window = 2;
    room = std::make_unique<port_room>(self, std::vector{end});
    port_surroundings around;
    around.clock = [this] { return now += step; };
    around.waits = [this](const notice& what) {
      CHECK(what.level == log_level::warn);
      CHECK(what.topic.find(' ') == std::string::npos); // It is a word on its way to the launcher.
      said.push_back(what.topic + ": " + what.text);
    };
    around.log = [this](log_level, const std::string& text) { logged.push_back(text); };
    around.wake = [this] { ++woken; };
    room->begin(std::move(around), links);
    room->bind(0, port);
  }

  std::unique_ptr<port_room> room;
  std::shared_ptr<joint> links = std::make_shared<joint>();
  time_point now{0};
  time_point step{0}; ///< The time that passes with each look at the clock.
  std::vector<std::string> said, logged;
  int woken = 0;
};

using lines = std::vector<std::string>;

parcel_message parcel_of(std::uint64_t sequence) {
  return {1, sequence, std::vector<std::byte>(sizeof(int)), {}};
}

} // namespace

TEST_CASE("a_wait_for_credit_is_told_with_the_name_of_the_port_and_so_is_its_end") {
  out<int> seen{"seen"};
  one_end a{player, learner, seen};
  a.room->listed({{learner, "host:1"}});
  REQUIRE(a.links->connected.size() == 1);
  const auto link = a.links->connected.front();
  a.room->opened(link);
  a.room->received(link, parcels_taken{1, 0});
  a.room->deliver(); // joined
  CHECK(seen.send({1, {}}, 0));
  CHECK(seen.send({2, {}}, 0));
  CHECK_FALSE(seen.ready(0));
  a.now += 1s;
  a.room->tick();
  a.room->tick();
  const std::string waits =
    "port 'seen' waits for worker 0: it has taken none of 2 parcels for 1 s";
  CHECK(a.logged == lines{waits});
  CHECK(a.said == lines{"wait-of-lane-0-0: " + waits, "end-of-lane-0-0: "});
  a.room->received(link, parcels_taken{1, 1});
  CHECK(a.said.size() == 2); // The receiver is behind still.
  a.room->received(link, parcels_taken{1, 2});
  CHECK(a.logged.back() == "port 'seen' no longer waits for worker 0");
  CHECK(a.said.size() == 4);
  CHECK(a.said[2] == "wait-of-lane-0-0: ");
  CHECK(a.said[3] == "end-of-lane-0-0: port 'seen' no longer waits for worker 0");
  CHECK(a.room->counters("players")
        == std::vector<port_counters>{{"players.seen", 2, 8, 0, 1'000'000}});
}

TEST_CASE("a_long_wait_for_a_parcel_is_told_once_until_one_comes") {
  in<int> came{"came"};
  one_end b{learner, player, came};
  const auto link = b.room->accepted(player);
  b.room->received(link, channel_open{"players>learners", 1, in<int>::type(), 2});
  b.step = 100ms;
  bool has_parcel = false;
  std::thread owner{[&] { has_parcel = came.next(5s).has_value(); }};
  for (int i = 0; i < 10'000 && b.said.empty(); ++i) {
    b.room->tick();
    std::this_thread::sleep_for(1ms);
  }
  const std::string waits = "port 'came' has waited for a parcel for 10 s";
  CHECK(b.said == lines{"parcels-of-port-0: " + waits});
  b.room->tick();
  CHECK(b.said.size() == 1);
  b.room->received(link, parcel_message{1, 1, std::vector<std::byte>(sizeof(int)), {}});
  owner.join();
  CHECK(has_parcel);
  CHECK(b.room->waited() >= 10s);
  CHECK(b.logged == lines{waits, "port 'came' has a parcel"});
  CHECK(b.said.back() == "parcels-of-port-0: ");
}

TEST_CASE("parcels_that_nothing_takes_are_told_of_and_can_be_taken_without_a_wait") {
  in<int> came{"came"};
  one_end b{learner, player, came};
  const auto link = b.room->accepted(player);
  b.room->received(link, channel_open{"players>learners", 1, in<int>::type(), 2});
  CHECK_FALSE(came.next(0s));
  b.room->received(link, parcel_message{1, 1, std::vector<std::byte>(sizeof(int)), {}});
  b.room->deliver();
  b.now += 10s;
  b.room->tick();
  b.room->tick();
  const std::string text =
    "port 'came' has parcels that nothing takes: set its take, or call next()";
  CHECK(b.said == lines{"kept-at-port-0: " + text});
  CHECK(came.next(0s));
  CHECK_FALSE(came.next(0s));
}

TEST_CASE("next_is_refused_within_a_callback") {
  in<int> came{"came"};
  one_end b{learner, player, came};
  const auto link = b.room->accepted(player);
  b.room->received(link, channel_open{"players>learners", 1, in<int>::type(), 2});
  for (std::uint64_t number : {1, 2})
    b.room->received(link, parcel_message{1, number, std::vector<std::byte>(sizeof(int)), {}});
  came.take = [&](parcel<int>&&) { (void)came.next(1s); };
  CHECK_THROWS_WITH(b.room->deliver(), "port 'came' waits for a parcel, within a callback: call "
                                       "next() in gradient() itself");
}

TEST_CASE("a_delivery_ends_though_senders_refill_the_inbox") {
  in<int> came{"came"};
  one_end b{learner, player, came};
  const auto link = b.room->accepted(player);
  std::uint64_t taken = 0;
  came.take = [&](parcel<int>&&) {
    if (++taken < 100) // So that it ends in any case.
      b.room->received(link, parcel_of(taken + 1));
  };
  b.room->received(link, channel_open{"players>learners", 1, in<int>::type(), 2});
  b.room->received(link, parcel_of(1));
  CHECK(b.woken == 1); // Once for both events.
  b.room->deliver();
  CHECK(taken == 1);
  CHECK(b.woken == 2);
  b.room->deliver();
  CHECK(taken == 2);
  CHECK(b.woken == 3);
}

TEST_CASE("a_delivery_of_few_events_leaves_the_rest_for_the_next_one") {
  in<int> came{"came"};
  one_end b{learner, player, came};
  int taken = 0;
  came.take = [&](parcel<int>&&) { ++taken; };
  const auto link = b.room->accepted(player);
  b.room->received(link, channel_open{"players>learners", 1, in<int>::type(), 2});
  b.room->received(link, parcel_of(1));
  b.room->received(link, parcel_of(2));
  b.room->deliver(2); // The first event is `joined`.
  CHECK(taken == 1);
  CHECK(b.woken == 2);
  b.room->deliver(2);
  CHECK(taken == 2);
  CHECK(b.woken == 2);
}

TEST_CASE("a_wait_for_a_parcel_ends_in_time_though_parcels_of_another_port_come") {
  in<int> came{"came"}, busy{"busy"};
  std::vector<channel_end> ends(2);
  for (auto& end : ends) {
    end.head = in<int>::type();
    end.peers = {{player.role, player.index, {}}};
    end.window = 2;
  }
  ends[0].channel = "players>learners";
  ends[1].channel = "players>learners.2";
  port_room room{learner, ends};
  port_surroundings around;
  around.clock = steady_now;
  room.begin(std::move(around), std::make_shared<joint>());
  room.bind(0, came);
  room.bind(1, busy);
  const auto link = room.accepted(player);
  std::uint64_t taken = 0;
  busy.take = [&](parcel<int>&&) {
    std::this_thread::sleep_for(1ms);
    if (++taken < 2000) // So that it ends in any case.
      room.received(link, parcel_of(taken + 1));
  };
  room.received(link, channel_open{"players>learners.2", 1, in<int>::type(), 2});
  room.received(link, parcel_of(1));
  CHECK_FALSE(came.next(10ms).has_value());
  CHECK(taken < 1000);
  const auto before = taken;
  CHECK_FALSE(came.next(0ms).has_value());
  CHECK(taken <= before + 2); // Without time it takes the events that are there: a window.
}

TEST_CASE("a_port_has_no_counts_before_its_object_is_made") {
  channel_end end;
  end.channel = "players>learners";
  end.peers = {{player.role, player.index, {}}};
  const port_room room{learner, {end}};
  CHECK(room.counters("learners").empty());
}

} // namespace port_room_test
