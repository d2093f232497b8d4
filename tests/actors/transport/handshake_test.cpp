// Tests which peers get a link: strangers, garbage and silent peers get none.
#include "tests/actors/transport_fixture.hpp"

#include "doctest/doctest.h"

#include <array>
#include <random>
#include <thread>
#include <unistd.h>

namespace handshake_test {

using namespace troupe;
using namespace troupe::test;

TEST_CASE("strangers_are_refused_with_the_reason_at_both_ends") {
  struct unknown_member {
    std::string what;
    hello acceptor;
    hello connector;
    errc code;
  };
  hello newer = hello_of();
  newer.version = wire::protocol_version + 1;
  hello packing = hello_of();
  packing.sends = only(encoding::topk);
  hello watching = hello_of();
  watching.from.role = role::observer;
  hello built_here = hello_of(), built_there = hello_of();
  built_here.probes = {{"f/1", 1}, {"g/1", 5}};
  built_there.probes = {{"g/1", 6}};
  const std::vector<unknown_member> unknown_members{
    {"other function", built_here, built_there, errc::version_mismatch},
    {"role without links", hello_of(), watching, errc::untrusted},
    {"packing connector", hello_of(), packing, errc::version_mismatch},
    {"packing acceptor", packing, hello_of(), errc::version_mismatch},
    {"newer connector", hello_of(), newer, errc::version_mismatch},
    {"newer acceptor", newer, hello_of(), errc::version_mismatch},
    {"other job", hello_of(7), hello_of(8), errc::wrong_job},
    {"other secret", hello_of(7, 1), hello_of(7, 2), errc::wrong_job}};
  for (const unknown_member& each : unknown_members)
    for (const link_kind& kind : link_kinds()) {
      CAPTURE(each.what);
      CAPTURE(kind.name);
      side server{each.acceptor, kind.options}, client{each.connector, kind.options};
      client.links.connect(server.listen());
      REQUIRE(client.wait_lost());
      REQUIRE(server.wait_rejected());
      CHECK(server.rejected[0].code == each.code);
      CHECK(client.lost[0].code == each.code);
      CHECK(client.opened.empty());
      CHECK(server.opened.empty());
      CHECK(contains(server.rejected[0].text, kind.options.unix_sockets
                                                ? "process " + std::to_string(::getpid()) + " "
                                                : "127.0.0.1:"));
    }
}

TEST_CASE("who_computes_a_function_otherwise_is_told_so") {
  hello ours = hello_of(), theirs = hello_of();
  ours.from = {role::coordinator, 0, {1}};
  theirs.from = {role::server, 2, {1}};
  ours.probes = {{"fedbuff/1", 0x3f2a77d1}};
  theirs.probes = {{"fedbuff/1", 0x9b11c2e0}};
  side server{ours}, client{theirs};
  client.links.connect(server.listen());
  REQUIRE(client.wait_lost());
  CHECK(contains(client.lost[0].text,
                 "refused the link: it found that server 2 computes 'fedbuff/1' otherwise "
                 "(9b11c2e0, the job 3f2a77d1): build all hosts alike"));
  theirs.probes.clear(); // A command of troupe knows no functions.
  side command{theirs};
  command.links.connect(server.listen());
  CHECK(command.wait_opened());
}

TEST_CASE("a_peer_without_the_secret_is_let_in_where_hosts_may_join_and_not_told_it") {
  side server{hello_of(7, 12345), {.admit_without_secret = true}}, client{hello_of(7, 0)};
  client.links.connect(server.listen());
  REQUIRE(client.wait_opened());
  CHECK(client.opened[0].peer.secret == 0);
}

TEST_CASE("a_peer_without_the_secret_is_refused_where_no_other_host_may_join") {
  side server{hello_of(7, 12345)}, client{hello_of(7, 0)};
  client.links.connect(server.listen());
  REQUIRE(client.wait_lost());
  REQUIRE(server.wait_rejected());
  CHECK(client.lost[0].code == errc::wrong_job);
  CHECK(contains(client.lost[0].text, "it admits no other hosts: start the job with --listen"));
  CHECK(server.rejected[0].code == errc::wrong_job);
  CHECK(server.opened.empty());
}

TEST_CASE("who_cannot_read_what_the_other_packs_is_told_so") {
  hello packing = hello_of();
  packing.sends = only(encoding::topk) | only(encoding::int8);
  {
    side server, client{packing};
    client.links.connect(server.listen());
    REQUIRE(client.wait_lost());
    REQUIRE(server.wait_rejected());
    CHECK(contains(client.lost[0].text, "cannot read the encoding of --compress (int8, topk): "
                                        "leave it out, or start the same program there"));
    CHECK(contains(server.rejected[0].text,
                   "compresses with int8, topk, which this program cannot read"));
  }
  hello reading = hello_of();
  reading.reads = all_encodings;
  side server{reading}, client{packing};
  client.links.connect(server.listen());
  CHECK(client.wait_opened());
  CHECK(server.wait_opened());
  CHECK(server.opened.size() == 1);
}

TEST_CASE("an_acceptor_without_a_secret_lets_in_who_has_one") {
  side server{hello_of(7, 0)}, client{hello_of(7, 12345)};
  client.links.connect(server.listen());
  CHECK(client.wait_opened());
  CHECK(server.wait_opened());
}

TEST_CASE("garbage_is_turned_away_and_harms_nobody") {
  side server;
  const endpoint where = server.listen();
  std::minstd_rand random{1};
  for (int i = 0; i < 1000; ++i) {
    const bare_peer peer{where};
    std::array<std::uint32_t, 16> words;
    for (std::uint32_t& word : words)
      word = static_cast<std::uint32_t>(random()) * 2;
    if (i % 2 == 0) // A frame, but too long for a hello or with noise as its head.
      words = {1, i % 4 == 0 ? 4u : words[1] % 100'000, i % 4 == 0 ? 0 : words[2], 0};
    if (i % 8 >= 4)
      REQUIRE(peer.send(encode(detail::preamble{wire::protocol_version, 0})));
    REQUIRE(peer.send(std::as_bytes(std::span{words})));
    REQUIRE(peer.wait_end());
  }
  REQUIRE(server.wait_rejected(1000));
  CHECK(server.rejected[0].code == errc::malformed);
  CHECK(contains(server.rejected[0].text, " does not speak this protocol"));
  side client;
  client.links.connect(where);
  CHECK(client.wait_opened());
  REQUIRE(server.wait_opened());
  CHECK(server.opened.size() == 1);
}

TEST_CASE("only_a_hello_opens_a_link") {
  side server;
  const bare_peer peer{server.listen()};
  REQUIRE(peer.send(reply_message{1, {push_reply{}, {}}}));
  CHECK(peer.wait_end());
  REQUIRE(server.wait_rejected());
  for (const message& other :
       {message{reply_message{1, {push_reply{}, {}}}}, message{status_message{}}}) {
    const bare_peer knows_the_preamble{server.listen()};
    REQUIRE(knows_the_preamble.send(encode(detail::preamble{wire::protocol_version, 0})));
    REQUIRE(knows_the_preamble.send(other));
    CHECK(knows_the_preamble.wait_end());
  }
  REQUIRE(server.wait_rejected(3));
  CHECK(server.received.empty());
}

TEST_CASE("the_secret_is_compared_before_anything_else_is_looked_at") {
  side server{hello_of(7, 12345)};
  const bare_peer peer{server.listen()};
  REQUIRE(peer.send(encode(detail::preamble{wire::protocol_version, 54321})));
  REQUIRE(server.wait_rejected());
  CHECK(server.rejected[0].code == errc::wrong_job);
  REQUIRE(peer.readable(10s));
  const auto answer = peer.receive();
  REQUIRE(answer.size() > detail::preamble_bytes);
  const auto said = detail::decode_preamble(std::span{answer}.first<detail::preamble_bytes>());
  CHECK(said.version == wire::protocol_version);
  CHECK(said.secret == 0);
}

TEST_CASE("the_first_wrong_byte_ends_a_connection") {
  side server;
  const bare_peer peer{server.listen()};
  REQUIRE(peer.send(std::as_bytes(std::span{"GET", 3})));
  CHECK(peer.wait_end());
  REQUIRE(server.wait_rejected());
  CHECK(contains(server.rejected[0].text, " does not speak this protocol"));
}

TEST_CASE("garbage_on_an_open_link_ends_it") {
  side server;
  const bare_peer peer{server.listen()};
  REQUIRE(peer.send(hello_of()));
  REQUIRE(server.wait_opened());
  REQUIRE(peer.send(std::as_bytes(std::span{"this is no message, that much is certain"})));
  REQUIRE(server.wait_lost());
  CHECK(server.lost[0].code == errc::malformed);
  CHECK(peer.wait_end());
}

TEST_CASE("a_refusal_on_an_open_link_ends_it_with_its_reason") {
  pair_of_sides ends;
  REQUIRE(ends.ready);
  ends.server.links.send(ends.to_client, rejection{{errc::fenced, "a newer\nincarnation"}});
  ends.server.links.close(ends.to_client);
  REQUIRE(ends.client.wait_lost());
  CHECK(ends.client.lost[0].code == errc::fenced);
  CHECK(contains(ends.client.lost[0].text, "a newer incarnation"));
}

TEST_CASE("links_beyond_the_limit_are_closed_at_once") {
  side server{hello_of(), {.links_max = 2}};
  const endpoint where = server.listen();
  side client;
  client.links.connect(where);
  client.links.connect(where);
  REQUIRE(client.wait_opened(2));
  client.links.connect(where);
  REQUIRE(client.wait_lost());
  REQUIRE(server.wait_rejected());
  client.links.close(client.opened[0].link);
  REQUIRE(server.wait_lost());
  client.links.connect(where);
  CHECK(client.wait_opened(3));
}

TEST_CASE("a_silent_or_dripping_connection_is_closed_at_the_handshake_deadline") {
  side server{hello_of(), {.handshake_timeout = 200ms}};
  const endpoint where = server.listen();
  const auto begin = steady_clock::now();
  const bare_peer silent{where}, dripping{where};
  const auto drops = bytes_of(hello_of());
  for (std::size_t i = 0; i < 8; ++i) {
    (void)dripping.send(std::span{drops}.subspan(i, 1)); // It may be closed already.
    std::this_thread::sleep_for(10ms);
  }
  CHECK(silent.wait_end());
  CHECK(dripping.wait_end());
  CHECK(steady_clock::now() - begin >= 190ms);
  REQUIRE(server.wait_rejected(2));
  CHECK(contains(server.rejected[0].text, "no hello within 200 ms"));
}

TEST_CASE("an_acceptor_that_never_answers_is_lost_at_the_handshake_deadline") {
  const auto listener = make_listener({"127.0.0.1", 0});
  REQUIRE(listener);
  const descriptor owned{*listener};
  side client{hello_of(), {.handshake_timeout = 100ms}};
  client.links.connect(*local_endpoint(owned.get()));
  REQUIRE(client.wait_lost());
  CHECK(client.lost[0].code == errc::peer_lost);
}

} // namespace handshake_test
