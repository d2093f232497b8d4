#include "actors/protocol/channel/channel_hub.hpp"

#include "doctest/doctest.h"

#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace troupe::channel_hub_test {

using namespace std::chrono_literals;
using lines = std::vector<std::string>;

member_id worker(std::uint32_t index, std::uint64_t incarnation = 0) {
  return member_of(worker_id{index}, {incarnation});
}

/// Writes down what the hub decides.
struct recorder final : channel_effects {
  lines said;

  void connect(lane_link link, const member_address& to) override {
    add("connect " + number(link) + " " + to.address);
  }
  void send(lane_link link, channel_message what) override {
    add(number(link) + ": " + std::visit([](const auto& x) { return text(x); }, what));
  }
  void refuse(lane_link link, const failure& why) override {
    CHECK(why.code == errc::contract_broken);
    add("refuse " + number(link) + ": " + why.text);
  }
  void close(lane_link link) override { add("close " + number(link)); }
  void wake() override { add("wake"); }
  void waits(std::size_t end, std::uint32_t peer, const std::string& what) override {
    add("waits " + std::to_string(end) + "/" + std::to_string(peer) + ": " + what);
  }
  void fail(const failure& why) override { add("fail: " + why.text); }

private:
  void add(std::string line) { said.push_back(std::move(line)); }
  static std::string number(lane_link link) { return std::to_string(link.value); }
  static std::string text(const channel_open& x) {
    return "open " + x.channel + " " + std::to_string(x.session) + " " + x.head;
  }
  static std::string text(const parcel_message& x) {
    return "parcel " + std::to_string(x.session) + "." + std::to_string(x.sequence);
  }
  static std::string text(const parcels_taken& x) {
    return "taken " + std::to_string(x.count) + " of " + std::to_string(x.session);
  }
};

channel_end sending(std::vector<member_id> peers, std::uint32_t window = 2) {
  return {"a.out>b.in", "out", true, "int", std::move(peers), window};
}

channel_end receiving(std::vector<member_id> peers, std::uint32_t window = 2) {
  return {"a.out>b.in", "in", false, "int", std::move(peers), window};
}

/// A hub, and what it decided since the last look.
struct fixture {
  fixture(const member_id& self, std::vector<channel_end> ends) : hub(self, std::move(ends)) {}

  lines said() { return std::exchange(out.said, {}); }
  lines list(const std::vector<member_address>& all) {
    hub.listed(all, now, out);
    return said();
  }
  lines open(std::uint64_t link) {
    hub.opened({link}, out);
    return said();
  }
  lines hear(std::uint64_t link, channel_message what) {
    hub.received({link}, std::move(what), now, out);
    return said();
  }
  lines lose(std::uint64_t link, const std::optional<failure>& refused = std::nullopt) {
    hub.closed({link}, now, out, refused);
    return said();
  }
  lines tick(std::chrono::milliseconds after) {
    now += after;
    hub.tick(now, out);
    return said();
  }
  /// Takes all events. Parcels stay in hand.
  lines events() {
    lines all;
    while (auto event = hub.next()) {
      static constexpr const char* names[] = {"parcel", "joined", "lost", "writable"};
      all.push_back(std::string{names[static_cast<int>(event->what)]} + " "
                    + std::to_string(event->end) + "/" + std::to_string(event->peer)
                    + (event->what == channel_event::kind::parcel
                         ? " " + std::to_string(event->parcel.sequence)
                         : ""));
      if (event->what == channel_event::kind::parcel)
        in_hand.push_back(std::move(*event));
    }
    return all;
  }
  /// Ends the callback of the first parcel in hand.
  lines finish() {
    hub.taken(in_hand.front(), out);
    in_hand.pop_front();
    return said();
  }
  bool send(std::uint32_t peer = 0, std::size_t end = 0) {
    return hub.send(end, peer, std::vector<std::byte>(4), {{nullptr, 10}}, now, out);
  }

  channel_hub hub;
  recorder out;
  time_point now = 100s;
  std::deque<channel_event> in_hand = {};
};

/// Worker 0 as a sender to workers 5 and 6.
struct sender : fixture {
  sender() : fixture(worker(0, 1), {sending({worker(5), worker(6)})}) {}

  /// Joins lane 0 with the first incarnation of worker 5, by link 1 and session 1.
  void join() {
    list({{worker(5, 50), "host:50"}});
    open(1);
    hear(1, parcels_taken{1, 0});
    events();
    said();
  }
};

/// Worker 5 as a receiver of workers 0 and 1.
struct receiver : fixture {
  receiver() : fixture(worker(5, 50), {receiving({worker(0), worker(1)})}) {}

  std::uint64_t accept(const member_id& from) {
    const auto link = hub.new_link();
    hub.accepted(link, from, now);
    return link.value;
  }
  std::uint64_t join(const member_id& from, std::uint64_t session) {
    const auto link = accept(from);
    hear(link, channel_open{"a.out>b.in", session, "int", 2});
    return link;
  }
  lines parcel(std::uint64_t link, std::uint64_t session, std::uint64_t sequence) {
    return hear(link, parcel_message{session, sequence, std::vector<std::byte>(4), {}});
  }
};

TEST_SUITE_BEGIN("channel_hub");

// -- joining --

TEST_CASE("a sender connects to a listed member and opens a session") {
  sender a;
  CHECK(a.list({{worker(5, 50), ""}, {worker(7, 70), "host:70"}}).empty());
  CHECK(a.list({{worker(5, 50), "host:50"}}) == lines{"connect 1 host:50"});
  CHECK(a.list({{worker(5, 50), "host:50"}}).empty());
  CHECK(a.open(1) == lines{"1: open a.out>b.in 1 int"});
  CHECK(a.open(1).empty());
  CHECK_FALSE(a.hub.ready(0, 0, a.now));
  CHECK(a.hear(1, parcels_taken{1, 0}) == lines{"wake"});
  CHECK(a.list({{worker(5, 50), "host:50"}, {worker(6, 60), "host:60"}})
        == lines{"connect 2 host:60"});
}

TEST_CASE("a program sends in a session after it heard of it") {
  sender a;
  a.list({{worker(5, 50), "host:50"}});
  a.open(1);
  a.hear(1, parcels_taken{1, 0});
  CHECK_FALSE(a.send());
  CHECK(a.events() == lines{"joined 0/0", "writable 0/0"});
  CHECK(a.hub.ready(0, 0, a.now));
  CHECK(a.send());
  CHECK(a.said() == lines{"1: parcel 1.1"});
}

TEST_CASE("a receiver accepts a session, and takes its parcels in order") {
  receiver b;
  const auto link = b.accept(worker(0, 1));
  CHECK(b.hear(link, channel_open{"a.out>b.in", 7, "int", 2}) == lines{"wake", "1: taken 0 of 7"});
  CHECK(b.parcel(link, 7, 1).empty());
  CHECK(b.parcel(link, 7, 2).empty());
  CHECK(b.events() == lines{"joined 0/0", "parcel 0/0 1", "parcel 0/0 2"});
  CHECK(b.finish() == lines{"1: taken 1 of 7"});
  CHECK(b.parcel(link, 7, 3) == lines{"wake"});
  CHECK(b.finish() == lines{"1: taken 2 of 7"});
}

TEST_CASE("each lane has sessions of its own") {
  receiver b;
  const auto first = b.join(worker(0, 1), 7), second = b.join(worker(1, 2), 7);
  b.parcel(second, 7, 1);
  b.parcel(first, 7, 1);
  CHECK(b.events() == lines{"joined 0/0", "joined 0/1", "parcel 0/1 1", "parcel 0/0 1"});
  b.lose(first);
  CHECK(b.events() == lines{"lost 0/0"});
  CHECK(b.finish() == lines{"2: taken 1 of 7"});
  CHECK(b.finish().empty()); // Its session has ended.
}

TEST_CASE("a member of a circle has both ends of a channel") {
  fixture c{worker(1, 1), {sending({worker(2)}), receiving({worker(0)})}};
  CHECK(c.list({{worker(2, 2), "host:2"}}) == lines{"connect 1 host:2"});
  const auto link = c.hub.new_link();
  c.hub.accepted(link, worker(0, 3), c.now);
  CHECK(c.hear(link.value, channel_open{"a.out>b.in", 1, "int", 2})
        == lines{"wake", "2: taken 0 of 1"});
  CHECK(c.open(1) == lines{"1: open a.out>b.in 2 int"});
  c.hear(1, parcels_taken{2, 0});
  CHECK(c.events() == lines{"joined 1/0", "joined 0/0"});
}

// -- credit --

TEST_CASE("no more than the window is under way") {
  sender a;
  a.join();
  CHECK(a.send());
  CHECK(a.send());
  CHECK_FALSE(a.hub.ready(0, 0, a.now));
  CHECK_FALSE(a.send());
  CHECK_FALSE(a.send());
  a.said();
  CHECK(a.hear(1, parcels_taken{1, 1}) == lines{"wake"});
  CHECK(a.hear(1, parcels_taken{1, 2}).empty());
  CHECK(a.events() == lines{"writable 0/0"});
  CHECK(a.send());
  CHECK(a.send());
  CHECK_FALSE(a.send());
}

TEST_CASE("a receiver gives credit for half a window at once, and for a rest at a tick") {
  fixture b{worker(5, 50), {receiving({worker(0)}, 5)}};
  const auto link = b.hub.new_link();
  b.hub.accepted(link, worker(0, 1), b.now);
  b.hear(link.value, channel_open{"a.out>b.in", 7, "int", 5});
  b.said();
  for (std::uint64_t sequence = 1; sequence <= 5; ++sequence)
    b.hear(link.value, parcel_message{7, sequence, {}, {}});
  b.events();
  CHECK(b.finish().empty());
  CHECK(b.finish().empty());
  CHECK(b.finish() == lines{"1: taken 3 of 7"});
  CHECK(b.finish().empty());
  CHECK(b.tick(10ms) == lines{"1: taken 4 of 7"});
  CHECK(b.tick(10ms).empty());
}

TEST_CASE("a lane with bytes_max under way has no credit, though its window has room") {
  auto end = sending({worker(5)}, 8);
  end.bytes_max = 45; // A parcel has 44 bytes, of which the head has 4.
  fixture a{worker(0, 1), {end}};
  a.list({{worker(5, 50), "host:50"}});
  a.open(1);
  a.hear(1, parcels_taken{1, 0});
  a.events();
  CHECK(a.send());
  CHECK(a.send());
  CHECK_FALSE(a.hub.ready(0, 0, a.now));
  CHECK_FALSE(a.send());
  a.said();
  CHECK(a.hear(1, parcels_taken{1, 1}) == lines{"wake"});
  CHECK(a.events() == lines{"writable 0/0"});
  CHECK(a.send());
  CHECK_FALSE(a.send());
  a.lose(1);
  a.events();
  a.tick(20ms);
  a.open(2);
  a.hear(2, parcels_taken{2, 0});
  a.events();
  CHECK(a.send()); // A new session has nothing under way.
}

TEST_CASE("a parcel larger than bytes_max goes alone") {
  auto end = sending({worker(5)}, 8);
  end.bytes_max = 1;
  fixture a{worker(0, 1), {end}};
  a.list({{worker(5, 50), "host:50"}});
  a.open(1);
  a.hear(1, parcels_taken{1, 0});
  a.events();
  for (std::uint64_t sent = 1; sent <= 3; ++sent) {
    CHECK(a.send());
    CHECK_FALSE(a.send());
    a.hear(1, parcels_taken{1, sent});
  }
}

TEST_CASE("a receiver gives credit for half of bytes_max at once") {
  auto end = receiving({worker(0)}, 100);
  end.bytes_max = 16;
  fixture b{worker(5, 50), {end}};
  const auto link = b.hub.new_link();
  b.hub.accepted(link, worker(0, 1), b.now);
  b.hear(link.value, channel_open{"a.out>b.in", 7, "int", 100});
  b.said();
  for (std::uint64_t sequence = 1; sequence <= 4; ++sequence)
    b.hear(link.value, parcel_message{7, sequence, std::vector<std::byte>(4), {}});
  b.events();
  CHECK(b.finish().empty());
  CHECK(b.finish() == lines{"1: taken 2 of 7"});
  CHECK(b.finish().empty());
  CHECK(b.finish() == lines{"1: taken 4 of 7"});
}

TEST_CASE("writable waits for credit again if the program has used it up") {
  sender a;
  a.join();
  a.send();
  a.send();
  CHECK_FALSE(a.send());
  a.hear(1, parcels_taken{1, 1});
  CHECK(a.send());
  CHECK(a.events().empty());
  a.hear(1, parcels_taken{1, 2});
  CHECK(a.events() == lines{"writable 0/0"});
  a.hear(1, parcels_taken{1, 3});
  CHECK(a.events().empty());
}

TEST_CASE("writable comes in a new session if the old one ended first") {
  sender a;
  a.join();
  a.send();
  a.send();
  CHECK_FALSE(a.send());
  a.hear(1, parcels_taken{1, 1}); // Puts writable into the inbox.
  a.lose(1);
  CHECK(a.events() == lines{"lost 0/0"});
  CHECK(a.tick(20ms) == lines{"connect 2 host:50"});
  a.open(2);
  a.hear(2, parcels_taken{2, 0});
  CHECK(a.events() == lines{"joined 0/0", "writable 0/0"});
}

TEST_CASE("a long wait for credit is told once, and its end") {
  sender a;
  a.join();
  a.send();
  a.send();
  a.now += 500ms;
  CHECK_FALSE(a.send());
  a.said();
  CHECK(a.tick(999ms).empty());
  CHECK_FALSE(a.send());
  CHECK(a.tick(1ms)
        == lines{"waits 0/0: waits for worker 5: it has taken none of 2 parcels for 1 s"});
  CHECK(a.tick(500ms).empty());
  CHECK(a.hub.counts(0, a.now).longest_wait == 1500ms);
  CHECK(a.hear(1, parcels_taken{1, 2}) == lines{"waits 0/0: ", "wake"});
  a.now += 10s;
  CHECK(a.hub.counts(0, a.now).longest_wait == 1500ms);
  a.send();
  a.send();
  a.send();
  a.tick(1s);
  a.now += 1s;
  CHECK(a.lose(1) == lines{"waits 0/0: ", "wake"});
  CHECK(a.hub.counts(0, a.now).longest_wait == 2s);
  CHECK_FALSE(a.send()); // Without a session it does not wait for credit.
  a.now += 10s;
  CHECK(a.hub.counts(0, a.now).longest_wait == 2s);
}

TEST_CASE("a receiver that is slow again and again is told of once") {
  sender a;
  a.join();
  std::size_t lines_told = 0;
  for (std::uint64_t taken = 1; taken <= 20; ++taken) {
    while (a.send()) {
    }
    a.said();
    lines_told += a.tick(1500ms).size();
    lines_told += a.hear(1, parcels_taken{1, taken}).size();
    a.events();
    a.said();
  }
  CHECK(lines_told == 21); // One line, and 20 times `wake`.
}

TEST_CASE("a lane waits from the first time that it is not ready for want of credit") {
  sender a;
  CHECK_FALSE(a.hub.ready(0, 0, a.now));
  a.now += 10s;
  CHECK(a.hub.counts(0, a.now).longest_wait == 0s); // Without a session it waits for no credit.
  a.join();
  CHECK(a.hub.ready(0, 0, a.now));
  a.send();
  a.send();
  CHECK_FALSE(a.hub.ready(0, 0, a.now));
  a.now += 500ms;
  CHECK_FALSE(a.hub.ready(0, 0, a.now));
  a.said();
  CHECK(a.tick(500ms)
        == lines{"waits 0/0: waits for worker 5: it has taken none of 2 parcels for 1 s"});
  CHECK(a.hear(1, parcels_taken{1, 1}).empty()); // No send() was refused.
  CHECK(a.hear(1, parcels_taken{1, 2}) == lines{"waits 0/0: "});
  CHECK(a.hub.counts(0, a.now).longest_wait == 1s);
}

TEST_CASE("counts say what was sent, taken and lost") {
  sender a;
  a.join();
  a.send();
  a.send();
  a.hear(1, parcels_taken{1, 1});
  CHECK(a.hub.counts(0, a.now) == port_counts{2, 88, 0, {}});
  a.lose(1);
  CHECK(a.hub.counts(0, a.now) == port_counts{2, 88, 1, {}});
  receiver b;
  const auto link = b.join(worker(0, 1), 1);
  b.parcel(link, 1, 1);
  b.parcel(link, 1, 2);
  b.events();
  b.lose(link);
  b.finish();
  CHECK(b.hub.counts(0, b.now) == port_counts{1, 4, 0, {}});
  b.finish();
  CHECK(b.hub.counts(0, b.now) == port_counts{2, 8, 0, {}});
}

// -- ends of sessions --

TEST_CASE("after the loss of a link both ends hear lost, and the sender connects again") {
  sender a;
  a.join();
  a.send();
  CHECK(a.said() == lines{"1: parcel 1.1"});
  CHECK(a.lose(1) == lines{"wake"});
  CHECK(a.events() == lines{"lost 0/0"});
  CHECK(a.tick(19ms).empty());
  CHECK(a.tick(1ms) == lines{"connect 2 host:50"});
  CHECK(a.open(2) == lines{"2: open a.out>b.in 2 int"});
  receiver b;
  const auto link = b.join(worker(0, 1), 1);
  b.parcel(link, 1, 1);
  b.lose(link);
  CHECK(b.events() == lines{"joined 0/0", "parcel 0/0 1", "lost 0/0"});
}

TEST_CASE("pauses between links grow to 500 ms, and are short again after a long session") {
  sender a;
  a.list({{worker(5, 50), "host:50"}});
  std::uint64_t link = 1;
  for (const auto pause : {20ms, 40ms, 80ms, 160ms, 320ms, 500ms, 500ms}) {
    a.lose(link);
    CHECK(a.tick(pause - 1ms).empty());
    CHECK(a.tick(1ms) == lines{"connect " + std::to_string(++link) + " host:50"});
  }
  // A session that ends at once does not count.
  a.open(link);
  a.hear(link, parcels_taken{1, 0});
  a.now += 499ms;
  a.lose(link);
  CHECK(a.tick(499ms).empty());
  CHECK(a.tick(1ms) == lines{"connect " + std::to_string(++link) + " host:50"});
  a.open(link);
  a.hear(link, parcels_taken{2, 0});
  a.now += 500ms;
  a.lose(link);
  CHECK(a.tick(20ms) == lines{"connect " + std::to_string(++link) + " host:50"});
}

TEST_CASE("another incarnation of the receiver is connected to at once") {
  sender a;
  a.join();
  a.lose(1);
  a.tick(20ms);
  a.lose(2);
  CHECK(a.list({{worker(5, 51), "host:51"}}) == lines{"connect 3 host:51"});
  CHECK(a.list({{worker(5, 52), "host:52"}}) == lines{"close 3", "connect 4 host:52"});
  CHECK(a.lose(3).empty());
}

TEST_CASE("a session goes on until another incarnation accepts one") {
  sender a;
  a.join();
  CHECK(a.list({}).empty());
  CHECK(a.list({{worker(5, 51), "host:51"}}) == lines{"connect 2 host:51"});
  a.open(2);
  CHECK(a.send());
  a.said();
  CHECK(a.hear(2, parcels_taken{2, 0}) == lines{"close 1", "wake"});
  CHECK(a.events() == lines{"lost 0/0", "joined 0/0"});
  CHECK(a.hub.counts(0, a.now).lost == 1);
  CHECK(a.hear(1, parcels_taken{1, 1}).empty());
  CHECK(a.send());
  CHECK(a.said() == lines{"2: parcel 2.1"});
}

TEST_CASE("a list out of date costs no session") {
  sender a;
  a.join();
  a.list({{worker(5, 49), "host:49"}});
  a.lose(2);
  a.list({{worker(5, 50), "host:50"}});
  CHECK(a.tick(1s).empty());
  CHECK(a.send());
}

TEST_CASE("without a list that has the receiver a sender waits for one") {
  sender a;
  a.join();
  a.list({});
  a.lose(1);
  CHECK(a.tick(1s).empty());
  CHECK(a.list({{worker(5, 50), "host:50"}}) == lines{"connect 2 host:50"});
  CHECK(a.list({}) == lines{"close 2"});
}

TEST_CASE("a receiver takes what has arrived of a dead sender, then hears lost and joined") {
  receiver b;
  const auto old = b.join(worker(0, 1), 3);
  b.parcel(old, 3, 1);
  b.parcel(old, 3, 2);
  CHECK(b.events() == lines{"joined 0/0", "parcel 0/0 1", "parcel 0/0 2"});
  const auto link = b.accept(worker(0, 2));
  CHECK(b.hear(link, channel_open{"a.out>b.in", 1, "int", 2}) == lines{"close 1", "wake"});
  CHECK(b.parcel(old, 3, 3).empty()); // It was on its way.
  CHECK(b.finish().empty());
  CHECK(b.finish() == lines{"2: taken 0 of 1"}); // The new session waits for the old one.
  CHECK(b.parcel(link, 1, 1).empty());
  CHECK(b.events() == lines{"lost 0/0", "joined 0/0", "parcel 0/0 1"});
  CHECK(b.finish() == lines{"2: taken 1 of 1"});
}

TEST_CASE("sessions that wait for an old one replace each other") {
  receiver b;
  const auto old = b.join(worker(0, 1), 1);
  b.parcel(old, 1, 1);
  b.events();
  CHECK(b.lose(old) == lines{"wake"});
  const auto second = b.accept(worker(0, 1));
  CHECK(b.hear(second, channel_open{"a.out>b.in", 2, "int", 2}).empty());
  const auto third = b.accept(worker(0, 1));
  CHECK(b.hear(third, channel_open{"a.out>b.in", 3, "int", 2}) == lines{"close 2"});
  b.lose(third);
  CHECK(b.finish().empty());
  CHECK(b.events() == lines{"lost 0/0"});
}

TEST_CASE("a late link of an older session does not end the newer one") {
  receiver b;
  const auto late = b.accept(worker(0, 1));
  const auto link = b.join(worker(0, 1), 2);
  CHECK(b.hear(late, channel_open{"a.out>b.in", 1, "int", 2}) == lines{"close 1"});
  CHECK(b.parcel(link, 2, 1).empty());
}

TEST_CASE("a session that a program has not heard of ends without an event") {
  sender a;
  a.list({{worker(5, 50), "host:50"}});
  a.open(1);
  a.hear(1, parcels_taken{1, 0});
  a.lose(1);
  CHECK(a.events().empty());
  receiver b;
  b.lose(b.join(worker(0, 1), 1));
  CHECK(b.events().empty());
  CHECK(b.hub.waiting() == 0);
}

// -- peers that misbehave --

TEST_CASE("messages of another session are dropped") {
  sender a;
  a.join();
  a.send();
  a.said();
  CHECK(a.hear(1, parcels_taken{2, 1}).empty());
  CHECK(a.hear(9, parcels_taken{1, 1}).empty());
  a.lose(1);
  CHECK(a.hub.counts(0, a.now).lost == 1);
  receiver b;
  const auto link = b.join(worker(0, 1), 5);
  CHECK(b.parcel(link, 4, 1).empty());
  CHECK(b.parcel(9, 5, 1).empty());
  CHECK(b.events() == lines{"joined 0/0"});
}

TEST_CASE("a parcel whose head has another size ends the session") {
  auto end = receiving({worker(0)});
  end.head_bytes = 8;
  fixture b{worker(5, 50), {end}};
  const auto link = b.hub.new_link();
  b.hub.accepted(link, worker(0, 1), b.now);
  b.hear(link.value, channel_open{"a.out>b.in", 1, "int", 2});
  b.events();
  b.said();
  CHECK(b.hear(link.value, parcel_message{1, 1, std::vector<std::byte>(8), {}}) == lines{"wake"});
  b.events();
  CHECK(b.hear(link.value, parcel_message{1, 2, std::vector<std::byte>(4), {}})
        == lines{"close 1", "wake"});
  CHECK(b.events() == lines{"lost 0/0"});
}

TEST_CASE("a parcel that does not fit ends the session") {
  receiver b;
  const auto link = b.join(worker(0, 1), 1);
  const std::string close = "close 1";
  b.events();
  SUBCASE("a gap") { CHECK(b.parcel(link, 1, 2) == lines{close, "wake"}); }
  SUBCASE("a repetition") {
    b.parcel(link, 1, 1);
    b.events();
    CHECK(b.parcel(link, 1, 1) == lines{close, "wake"});
  }
  SUBCASE("more than the window") {
    b.parcel(link, 1, 1);
    b.parcel(link, 1, 2);
    b.events();
    CHECK(b.parcel(link, 1, 3) == lines{close, "wake"});
  }
  SUBCASE("a second channel_open") {
    CHECK(b.hear(link, channel_open{"a.out>b.in", 2, "int", 2}) == lines{close, "wake"});
  }
  SUBCASE("a message of a receiver") {
    CHECK(b.hear(link, parcels_taken{1, 0}) == lines{close, "wake"});
  }
  CHECK(b.events() == lines{"lost 0/0"});
  CHECK(b.lose(link).empty());
}

TEST_CASE("a parcel before its session is accepted closes the link") {
  receiver b;
  CHECK(b.parcel(b.accept(worker(0, 1)), 1, 1) == lines{"close 1"});
  const auto old = b.join(worker(0, 1), 1);
  b.parcel(old, 1, 1);
  b.events();
  const auto link = b.accept(worker(0, 1));
  b.hear(link, channel_open{"a.out>b.in", 2, "int", 2});
  CHECK(b.parcel(link, 2, 1) == lines{"close 3"});
  CHECK(b.finish().empty());
}

TEST_CASE("credit that cannot be ends the session") {
  sender a;
  a.join();
  a.send();
  a.send();
  a.said();
  a.hear(1, parcels_taken{1, 1});
  SUBCASE("for more than was sent") {
    CHECK(a.hear(1, parcels_taken{1, 3}) == lines{"close 1", "wake"});
  }
  SUBCASE("less than before") { CHECK(a.hear(1, parcels_taken{1, 0}) == lines{"close 1", "wake"}); }
  SUBCASE("a message of a sender") {
    CHECK(a.hear(1, parcel_message{1, 1, {}, {}}) == lines{"close 1", "wake"});
  }
  CHECK(a.events() == lines{"lost 0/0"});
  CHECK(a.hub.counts(0, a.now).lost == 1);
  CHECK(a.tick(20ms) == lines{"connect 2 host:50"});
  a.open(2);
  CHECK(a.hear(2, parcels_taken{2, 1}) == lines{"close 2"}); // Accepts with parcels taken.
  CHECK(a.tick(39ms).empty());
  CHECK(a.tick(1ms) == lines{"connect 3 host:50"});
}

TEST_CASE("a link without a first message is closed after 5 s") {
  receiver b;
  b.accept(worker(0, 1));
  const auto link = b.join(worker(1, 1), 1);
  CHECK(b.tick(4999ms).empty());
  CHECK(b.tick(1ms) == lines{"close 1"});
  b.events();
  CHECK(b.parcel(link, 1, 1) == lines{"wake"});
}

TEST_CASE("ends of different builds or graphs are refused in one line") {
  receiver b;
  CHECK(b.hear(b.accept(worker(0, 1)), channel_open{"a.out>b.in", 1, "float", 2})
        == lines{"refuse 1: channel 'a.out>b.in' from worker 0 to worker 5: the sender has heads "
                 "float, and the receiver int; start both from one build with the same options"});
  CHECK(b.hear(b.accept(worker(0, 1)), channel_open{"x.y>z.u", 1, "int", 2})
        == lines{"refuse 2: channel 'x.y>z.u' from worker 0 to worker 5: the receiver has no such "
                 "channel; start both from one build with the same options"});
  CHECK(b.hear(b.accept(worker(3, 1)), channel_open{"a.out>b.in", 1, "int", 2})
        == lines{"refuse 3: channel 'a.out>b.in' from worker 3 to worker 5: the receiver has no "
                 "such sender; start both from one build with the same options"});
  CHECK(b.hear(b.accept(worker(0, 1)), channel_open{"a.out>b.in", 1, "int", 3})
        == lines{"refuse 4: channel 'a.out>b.in' from worker 0 to worker 5: the sender has a "
                 "window of 3, and the receiver of 2; start both from one build with the same "
                 "options"});
  const auto link = b.join(worker(0, 1), 1); // A refusal is no session.
  CHECK(b.parcel(link, 1, 1).empty());
}

TEST_CASE("a refused sender fails, and asks that incarnation no more") {
  sender a;
  a.list({{worker(5, 50), "host:50"}});
  a.open(1);
  CHECK(a.lose(1, failure{errc::contract_broken, "different heads"})
        == lines{"fail: different heads"});
  CHECK(a.tick(10s).empty());
  CHECK(a.list({{worker(5, 50), "host:50"}}).empty());
  CHECK(a.list({{worker(5, 51), "host:51"}}) == lines{"connect 2 host:51"});
}

TEST_SUITE_END();

} // namespace troupe::channel_hub_test
