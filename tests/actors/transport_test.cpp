// Messages on open links: intact, in order, kept alive.
#include "tests/actors/transport_fixture.hpp"

#include "doctest/doctest.h"

#include <array>
#include <atomic>
#include <random>
#include <thread>

using namespace troupe;
using namespace troupe::test;

namespace {

bool same_values(const piece& a, const piece& b) {
  return a.where == b.where
         && std::equal(a.values.get(), a.values.get() + a.where.count, b.values.get());
}

} // namespace

TEST_CASE("each_kind_of_message_arrives_as_it_was_sent") {
  pair_of_sides ends;
  REQUIRE(ends.ready);
  const reply_message pulled{
    4, {{}, values{11, {{{{1}, 0, 3}, pattern(3, 1)}, {{{2}, 7, 1000}, pattern(1000, 2)}}}}};
  const request_message pull{3, {{}, query{{}, false, {{{1}, 2, 3}}}}};
  report reported;
  reported.from = {role::server, 1, {5}};
  server_report about_server;
  about_server.address = "127.0.0.1:1";
  about_server.version = 77;
  reported.body = about_server;
  orders ordered;
  ordered.to = {role::worker, 1, {5}};
  worker_orders for_worker;
  for_worker.leases = {{1, {2}, 3, 4}};
  for_worker.admitted = true;
  ordered.body = for_worker;
  const std::vector<message> sent{
    push_of(1, 4099), reply_message{2, {receipt{5, true}, {}}},     pull,
    pulled,           failure_message{5, {errc::not_yet, "later"}}, reported,
    ordered};
  for (const message& each : sent)
    ends.client.links.send(ends.to_server, each);
  REQUIRE(ends.server.wait_received(sent.size()));
  for (std::size_t i = 0; i < sent.size(); ++i) {
    CAPTURE(i);
    CHECK(bytes_of(ends.server.received[i]) == bytes_of(sent[i]));
  }
}

TEST_CASE("both_sides_learn_who_the_other_is_and_where_they_are") {
  side server{hello_of(7, 1)}, client{hello_of(7, 1)};
  const endpoint where = server.listen();
  client.links.connect(where);
  REQUIRE(client.wait_opened());
  REQUIRE(server.wait_opened());
  CHECK(client.opened[0].peer == hello_of(7, 1));
  CHECK(server.opened[0].peer == hello_of(7, 1));
  CHECK(server.opened[0].local == to_string(where));
  CHECK(parse_endpoint(client.opened[0].local)->host == "127.0.0.1");
}

TEST_CASE("messages_of_each_thread_keep_their_order") {
  constexpr std::uint64_t threads = 4, each = 2500;
  pair_of_sides ends;
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
    const std::uint64_t request = std::get<request_message>(got).number;
    out_of_order += next[request >> 32]++ != (request & 0xffffffff);
  }
  CHECK(out_of_order == 0);
}

TEST_CASE("large_tensors_arrive_intact_and_aligned_in_both_directions_at_once") {
  constexpr std::size_t count = std::size_t{16} << 20; // 64 MB
  pair_of_sides ends;
  REQUIRE(ends.ready);
  const request_message up = push_of(1, count, 1), down = push_of(2, count, 2);
  ends.client.links.send(ends.to_server, up);
  ends.server.links.send(ends.to_client, down);
  REQUIRE(ends.server.wait_received(1));
  REQUIRE(ends.client.wait_received(1));
  const auto& at_server =
    std::get<request_message>(ends.server.received[0]).what.push->pieces.at(0);
  const auto& at_client =
    std::get<request_message>(ends.client.received[0]).what.push->pieces.at(0);
  CHECK(same_values(at_server, up.what.push->pieces[0]));
  CHECK(same_values(at_client, down.what.push->pieces[0]));
  CHECK(reinterpret_cast<std::uintptr_t>(at_server.values.get()) % 64 == 0);
}

TEST_CASE("what_is_sent_before_the_link_opens_follows_the_handshake_in_order") {
  side server, client;
  const link_id link = client.links.connect(server.listen());
  for (std::uint64_t i = 0; i < 100; ++i)
    client.links.send(link, reply_message{i, {receipt{}, {}}});
  REQUIRE(server.wait_received(100));
  for (std::uint64_t i = 0; i < 100; ++i)
    CHECK(std::get<reply_message>(server.received[i]).number == i);
}

TEST_CASE("frames_are_found_however_their_bytes_are_cut") {
  side server;
  const bare_peer peer{server.listen()};
  std::vector<std::byte> stream = bytes_of(hello_of());
  const std::vector<message> sent{push_of(1, 3), push_of(2, 5000),
                                  reply_message{3, {receipt{}, {}}}, push_of(4, 0)};
  for (const message& each : sent) {
    const auto bytes = bytes_of(each);
    stream.insert(stream.end(), bytes.begin(), bytes.end());
    stream.resize(stream.size() + 16); // A sign of life between frames.
    stream[stream.size() - 16] = std::byte{1};
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

TEST_CASE("what_a_callback_sends_leaves_when_the_round_has_settled") {
  std::atomic<bool> sent = false, checked = false, own_thread = false;
  std::atomic<int> settled = 0;
  transport* links = nullptr;
  link_id to_peer;
  link_events events;
  events.opened = [&](link_id link, const hello&, const std::string&) { to_peer = link; };
  events.received = [&](link_id link, const message&) {
    own_thread = links->on_own_thread();
    for (std::uint64_t i = 0; i < 50; ++i)
      links->send(link, reply_message{i, {receipt{}, {}}});
    sent = true;
  };
  events.settle = [&] {
    if (!sent.exchange(false))
      return;
    ++settled;
    links->send(to_peer, reply_message{50, {receipt{}, {}}});
    while (!checked)
      std::this_thread::yield();
  };
  transport server{hello_of(), events};
  links = &server;
  CHECK_FALSE(server.on_own_thread());
  const bare_peer peer{*server.listen({"127.0.0.1", 0})};
  REQUIRE(peer.send(hello_of()));
  REQUIRE(peer.readable(10s));
  peer.receive();
  REQUIRE(peer.send(reply_message{1, {receipt{}, {}}}));
  CHECK_FALSE(peer.readable(100ms));
  checked = true;
  const std::size_t reply_bytes = bytes_of(reply_message{0, {receipt{}, {}}}).size();
  std::size_t bytes = 0;
  while (bytes < 51 * reply_bytes && peer.readable(10s))
    bytes += peer.receive().size();
  CHECK(bytes == 51 * reply_bytes);
  CHECK(own_thread);
  CHECK(settled == 1);
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
  const auto begin = clock::now();
  REQUIRE(server.wait_lost());
  CHECK(clock::now() - begin >= 250ms);
  CHECK(clock::now() - begin < 2s);
  CHECK(contains(server.lost[0].text, "said nothing for 300 ms"));
  CHECK(server.received.empty());
}

TEST_CASE("an_idle_link_stays_open") {
  pair_of_sides ends{{.silence_timeout = 1000ms}};
  REQUIRE(ends.ready);
  std::this_thread::sleep_for(2500ms);
  CHECK(ends.client.lost.empty());
  CHECK(ends.server.lost.empty());
  ends.client.links.send(ends.to_server, reply_message{1, {receipt{}, {}}});
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
