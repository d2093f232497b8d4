// Tests messages on open links: intact, in order, kept alive.
#include "actors/transport/frames/fragment_reader.hpp"
#include "tests/actors/transport_fixture.hpp"

#include "doctest/doctest.h"

#include <sys/resource.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <random>
#include <thread>

namespace transport_test {

using namespace troupe;
using namespace troupe::test;

namespace {

bool same_values(const piece& a, const piece& b) {
  return a.where == b.where
         && std::equal(a.values.get(), a.values.get() + a.where.count, b.values.get());
}

/// Lets a transport that waits for the flag go on and end, even where a test ends early.
struct set_at_end {
  std::atomic<bool>& flag;
  ~set_at_end() { flag = true; }
};

} // namespace

TEST_CASE("each_kind_of_message_arrives_as_it_was_sent") {
  const reply_message pulled{
    4, {{}, pull_reply{11, {{{{1}, 0, 3}, pattern(3, 1)}, {{{2}, 7, 1000}, pattern(1000, 2)}}}}};
  const request_message pull{3, {{}, pull_request{{}, false, {{{1}, 2, 3}}}}};
  status_message reported;
  reported.from = {role::server, 1, {5}};
  reported.address = "127.0.0.1:1";
  server_status about_server;
  about_server.chains.emplace_back().version = 77;
  reported.body = about_server;
  desired_state ordered;
  ordered.to = {role::worker, 1, {5}};
  desired_worker for_worker;
  for_worker.leases = {{1, {2}, 3, 4}};
  for_worker.admitted = true;
  ordered.body = for_worker;
  const std::vector<message> sent{
    push_of(1, 4099), reply_message{2, {push_reply{5, true}, {}}},  pull,
    pulled,           failure_message{5, {errc::not_yet, "later"}}, reported,
    ordered};
  for (const link_kind& kind : link_kinds()) {
    CAPTURE(kind.name);
    pair_of_sides ends{kind.options};
    REQUIRE(ends.ready);
    for (std::size_t i = 0; i < sent.size(); ++i) { // One by one, because classes may overtake.
      CAPTURE(i);
      ends.client.links.send(ends.to_server, sent[i]);
      REQUIRE(ends.server.wait_received(i + 1));
      CHECK(bytes_of(ends.server.received[i]) == bytes_of(sent[i]));
    }
  }
}

TEST_CASE("both_sides_learn_who_the_other_is_and_where_they_are") {
  for (const link_kind& kind : link_kinds()) {
    CAPTURE(kind.name);
    side server{hello_of(7, 1), kind.options}, client{hello_of(7, 1), kind.options};
    const endpoint where = server.listen();
    client.links.connect(where);
    REQUIRE(client.wait_opened());
    REQUIRE(server.wait_opened());
    CHECK(client.opened[0].peer == hello_of(7, 1));
    CHECK(server.opened[0].peer == hello_of(7, 1));
    CHECK(server.opened[0].local == to_string(where));
    if (kind.options.unix_sockets)
      CHECK(client.opened[0].local.empty());
    else
      CHECK(parse_endpoint(client.opened[0].local)->host == "127.0.0.1");
  }
}

TEST_CASE("messages_of_each_thread_keep_their_order") {
  constexpr std::uint64_t threads = 4, each = 2500;
  for (const link_kind& kind : link_kinds()) {
    CAPTURE(kind.name);
    pair_of_sides ends{kind.options};
    REQUIRE(ends.ready);
    std::vector<std::thread> senders;
    for (std::uint64_t t = 0; t < threads; ++t)
      senders.emplace_back([&ends, t] {
        for (std::uint64_t i = 0; i < each; ++i)
          ends.client.links.send(ends.to_server, push_of(t << 32 | i, i % 50 == 0 ? 30'000 : 1));
      });
    for (std::thread& sender : senders)
      sender.join();
    REQUIRE(ends.server.wait_received(threads * each));
    std::array<std::uint64_t, threads> next{};
    std::size_t out_of_order = 0;
    for (const message& got : ends.server.received) {
      const std::uint64_t request = only_request(got).number;
      out_of_order += next[request >> 32]++ != (request & 0xffffffff);
    }
    CHECK(out_of_order == 0);
  }
}

TEST_CASE("large_tensors_arrive_intact_and_aligned_in_both_directions_at_once") {
  for (const link_kind& kind : link_kinds())
    for (const std::size_t count :
         {std::size_t{16} << 20, std::size_t{300'001}, std::size_t{5000}}) {
      CAPTURE(kind.name);
      CAPTURE(count);
      pair_of_sides ends{kind.options};
      REQUIRE(ends.ready);
      const request_message up = push_of(1, count, 1), down = push_of(2, count, 2);
      for (std::size_t i = 1; i <= 3; ++i) { // The first come before the arenas are mapped.
        ends.client.links.send(ends.to_server, up);
        ends.server.links.send(ends.to_client, down);
        REQUIRE(ends.server.wait_received(i));
        REQUIRE(ends.client.wait_received(i));
        const auto& at_server = only_request(ends.server.received[i - 1]).what.push->pieces;
        const auto& at_client = only_request(ends.client.received[i - 1]).what.push->pieces;
        CHECK(same_values(at_server.at(0), up.what.push->pieces[0]));
        CHECK(same_values(at_client.at(0), down.what.push->pieces[0]));
        CHECK(reinterpret_cast<std::uintptr_t>(at_server[0].values.get()) % 64 == 0);
      }
    }
}

TEST_CASE("without_a_descriptor_for_a_peer_that_is_told_and_the_peer_gets_in_later") {
  side server;
  const auto where = server.listen();
  const auto there = detail::resolve(where)->front();
  const descriptor peer{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlimit none = before;
  none.rlim_cur = 3; // No descriptor below 3 is free.
  REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
  const int problem = ::connect(peer.get(), there.get(), there.size_bytes);
  const bool told = server.wait_hampered(1);
  REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
  REQUIRE(problem == 0);
  REQUIRE(told);
  REQUIRE(server.wait_hampered(2));
  CHECK(server.hampered[0] == "cannot accept a connection: Too many open files");
  CHECK(server.hampered[1].empty());
  const auto first = bytes_of(hello_of());
  REQUIRE(::send(peer.get(), first.data(), first.size(), 0) == std::ssize(first));
  CHECK(server.wait_opened());
}

TEST_CASE("a_higher_class_overtakes_a_large_tensor") {
  side server;
  const bare_peer peer{server.listen()};
  REQUIRE(peer.send(hello_of()));
  REQUIRE(server.wait_opened());
  constexpr std::size_t count = std::size_t{8} << 20;
  server.links.send(server.only_link(), push_of(1, count));
  server.links.send(server.only_link(), reply_message{2, {push_reply{}, {}}});
  server.links.send(server.only_link(), status_message{});
  buffer_pool pool;
  detail::fragment_reader reader{pool};
  reader.admit(nullptr);
  std::vector<std::string> order;
  std::size_t skip = detail::preamble_bytes; // The hello follows.
  while (order.size() < 4 && peer.readable(10s)) {
    const auto bytes = peer.receive();
    for (std::span<const std::byte> rest = bytes; !rest.empty();) {
      if (skip != 0) {
        const std::size_t skipped = std::min(skip, rest.size());
        skip -= skipped;
        rest = rest.subspan(skipped);
        continue;
      }
      const auto taken = reader.take(rest);
      REQUIRE(taken);
      rest = rest.subspan(*taken);
      if (!reader.complete())
        continue;
      const auto what = reader.decode();
      REQUIRE(what);
      order.push_back(std::holds_alternative<hello>(*what)            ? "hello"
                      : std::holds_alternative<status_message>(*what) ? "report"
                      : std::holds_alternative<request_list>(*what)   ? "push"
                                                                      : "reply");
    }
  }
  CHECK(order == std::vector<std::string>{"hello", "report", "reply", "push"});
}

TEST_CASE("what_is_sent_before_the_link_opens_follows_the_handshake_in_order") {
  side server, client;
  const link_id link = client.links.connect(server.listen());
  for (std::uint64_t i = 0; i < 100; ++i)
    client.links.send(link, reply_message{i, {push_reply{}, {}}});
  REQUIRE(server.wait_received(100));
  for (std::uint64_t i = 0; i < 100; ++i)
    CHECK(only_reply(server.received[i]).number == i);
}

TEST_CASE("frames_are_found_however_their_bytes_are_cut") {
  side server;
  const bare_peer peer{server.listen()};
  std::vector<std::byte> stream = bytes_of(hello_of());
  const std::vector<message> sent{push_of(1, 3), push_of(2, 5000),
                                  reply_message{3, {push_reply{}, {}}},
                                  push_of(4, 0)}; // One after the other, so that none overtakes.
  for (const message& each : sent) {
    const auto bytes = bytes_of(each);
    stream.insert(stream.end(), bytes.begin(), bytes.end());
    append(stream, encode(detail::fragment_header{})); // A sign of life between frames.
  }
  std::minstd_rand random{5};
  for (std::size_t at = 0; at < stream.size();) {
    const std::size_t size = std::min<std::size_t>(1 + random() % 97, stream.size() - at);
    REQUIRE(peer.send(std::span{stream}.subspan(at, size)));
    at += size;
    std::this_thread::sleep_for(10us);
  }
  REQUIRE(server.wait_received(sent.size()));
  for (std::size_t i = 0; i < sent.size(); ++i)
    CHECK(bytes_of(server.received[i]) == bytes_of(sent[i]));
}

TEST_CASE("what_little_a_callback_sends_leaves_together_when_the_round_has_settled") {
  constexpr std::uint64_t count = 12;
  std::atomic<bool> sent = false, checked = false, own_thread = false;
  std::atomic<int> settled = 0;
  transport* links = nullptr;
  link_id to_peer;
  link_events events;
  events.opened = [&](link_id link, const hello&, const std::string&) { to_peer = link; };
  events.received = [&](link_id link, const message&) {
    own_thread = links->on_own_thread();
    for (std::uint64_t i = 0; i < count; ++i)
      links->send(link, reply_message{i, {push_reply{}, {}}});
    sent = true;
  };
  events.settle = [&] {
    if (!sent.exchange(false))
      return;
    ++settled;
    while (!checked)
      std::this_thread::yield();
  };
  transport server{hello_of(), events};
  const set_at_end let_go{checked};
  links = &server;
  CHECK_FALSE(server.on_own_thread());
  const bare_peer peer{*server.listen({"127.0.0.1", 0})};
  REQUIRE(peer.send(hello_of()));
  REQUIRE(peer.readable(10s));
  peer.receive();
  std::this_thread::sleep_for(1ms); // After a pause the first reply does not wait for others.
  REQUIRE(peer.send(reply_message{1, {push_reply{}, {}}}));
  REQUIRE(peer.readable(10s));
  std::size_t bytes = peer.receive().size();
  const std::size_t all = count * frame_of(reply_message{0, {push_reply{}, {}}}).size();
  while (peer.readable(100ms)) // More than one leaves if the callback's thread was paused.
    bytes += peer.receive().size();
  CHECK(bytes < all);
  checked = true;
  while (bytes < all && peer.readable(10s))
    bytes += peer.receive().size();
  CHECK(bytes > all);
  CHECK(bytes <= all + count * detail::fragment_header_bytes);
  CHECK(own_thread);
  CHECK(settled == 1);
}

TEST_CASE("what_a_callback_sends_of_tensors_leaves_at_once") {
  std::atomic<bool> sent = false, checked = false;
  transport* links = nullptr;
  link_events events;
  events.received = [&](link_id link, const message&) {
    links->send(link, push_of(1, 1000));
    links->send(link, push_of(2, 1000));
    sent = true;
  };
  events.settle = [&] {
    while (sent && !checked)
      std::this_thread::yield();
  };
  transport server{hello_of(), events};
  const set_at_end let_go{checked};
  links = &server;
  const bare_peer peer{*server.listen({"127.0.0.1", 0})};
  REQUIRE(peer.send(hello_of()));
  REQUIRE(peer.readable(10s));
  peer.receive();
  REQUIRE(peer.send(reply_message{1, {push_reply{}, {}}}));
  std::size_t bytes = 0;
  while (bytes < 8000 && peer.readable(10s))
    bytes += peer.receive().size();
  CHECK(bytes >= 8000);
}

TEST_CASE("a_host_name_is_resolved") {
  side server, client;
  client.links.connect({"localhost", server.listen().port});
  CHECK(client.wait_opened());
}

TEST_CASE("half_a_frame_and_then_silence_is_a_lost_link") {
  side server{hello_of(), {.silence_timeout = 300ms}};
  const bare_peer peer{server.listen()};
  REQUIRE(peer.send(hello_of()));
  REQUIRE(server.wait_opened());
  const auto frame = bytes_of(push_of(1, 1000));
  REQUIRE(peer.send(std::span{frame}.first(500)));
  const auto begin = steady_clock::now();
  REQUIRE(server.wait_lost());
  CHECK(steady_clock::now() - begin >= 250ms);
  CHECK(contains(server.lost[0].text, "was silent for 300 ms"));
  CHECK(server.received.empty());
}

TEST_CASE("an_idle_link_stays_open") {
  pair_of_sides ends{{.silence_timeout = 3000ms}};
  REQUIRE(ends.ready);
  std::this_thread::sleep_for(5000ms);
  CHECK(ends.client.lost.empty());
  CHECK(ends.server.lost.empty());
  ends.client.links.send(ends.to_server, reply_message{1, {push_reply{}, {}}});
  CHECK(ends.server.wait_received(1));
}

TEST_CASE("signs_of_life_cost_a_few_bytes_a_second") {
  side server{hello_of(), {.silence_timeout = 1000ms}};
  const bare_peer peer{server.listen()};
  REQUIRE(peer.send(hello_of()));
  REQUIRE(server.wait_opened());
  const auto hello_bytes = bytes_of(hello_of()).size();
  std::this_thread::sleep_for(900ms);
  const auto bytes = peer.receive().size();
  CHECK(bytes > hello_bytes);
  CHECK(bytes < hello_bytes + 200);
}

} // namespace transport_test
