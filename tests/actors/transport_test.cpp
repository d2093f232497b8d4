#include "tests/actors/transport_fixture.hpp"

#include "doctest/doctest.h"

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <random>
#include <thread>

using namespace troupe;
using namespace troupe::test;

namespace {

std::shared_ptr<float> pattern(std::size_t count, std::uint32_t seed) {
  static buffer_pool pool;
  auto made = pool.floats(count);
  for (std::size_t i = 0; i < count; ++i)
    made.get()[i] = static_cast<float>((i * 2654435761u + seed) & 0xffffff);
  return made;
}

push_request push_of(std::uint64_t request, std::size_t count, std::uint32_t seed = 0) {
  push_request made;
  made.request = request;
  made.update.tables = {{2}};
  made.update.pieces = {{{{2}, 5, count}, pattern(count, seed)}};
  return made;
}

bool same_values(const piece& a, const piece& b) {
  return a.where == b.where
         && std::equal(a.values.get(), a.values.get() + a.where.count, b.values.get());
}

std::size_t entries(const char* folder) {
  std::size_t count = 0;
  DIR* const opened = opendir(folder);
  while (readdir(opened) != nullptr)
    ++count;
  closedir(opened);
  return count;
}

double processor_seconds() {
  rusage used;
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](timeval t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

/// A port where nobody listens.
endpoint closed_port() {
  const auto taken = make_listener({"127.0.0.1", 0});
  const auto where = *local_endpoint(*taken);
  ::close(*taken);
  return where;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

// -- messages ---------------------------------------------------------------------------------

TEST_CASE("each_kind_of_message_arrives_as_it_was_sent") {
  pair_of_sides ends;
  REQUIRE(ends.ready);
  pull_reply pulled;
  pulled.request = 4;
  pulled.values.version = 11;
  pulled.values.pieces = {{{{1}, 0, 3}, pattern(3, 1)}, {{{2}, 7, 1000}, pattern(1000, 2)}};
  pull_request pull;
  pull.request = 3;
  pull.query.ranges = {{{1}, 2, 3}};
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
  const std::vector<message> sent{push_of(1, 4099),
                                  push_reply{2, {5, true}},
                                  pull,
                                  pulled,
                                  failure_reply{5, {errc::not_yet, "later"}},
                                  reported,
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
    const std::uint64_t request = std::get<push_request>(got).request;
    out_of_order += next[request >> 32]++ != (request & 0xffffffff);
  }
  CHECK(out_of_order == 0);
}

TEST_CASE("large_tensors_arrive_intact_and_aligned_in_both_directions_at_once") {
  constexpr std::size_t count = std::size_t{16} << 20; // 64 MB
  pair_of_sides ends;
  REQUIRE(ends.ready);
  const push_request up = push_of(1, count, 1), down = push_of(2, count, 2);
  ends.client.links.send(ends.to_server, up);
  ends.server.links.send(ends.to_client, down);
  REQUIRE(ends.server.wait_received(1));
  REQUIRE(ends.client.wait_received(1));
  const auto& at_server = std::get<push_request>(ends.server.received[0]).update.pieces.at(0);
  const auto& at_client = std::get<push_request>(ends.client.received[0]).update.pieces.at(0);
  CHECK(same_values(at_server, up.update.pieces[0]));
  CHECK(same_values(at_client, down.update.pieces[0]));
  CHECK(reinterpret_cast<std::uintptr_t>(at_server.values.get()) % 64 == 0);
  CHECK(ends.server.links.statistics().bytes_received > 4 * count);
  CHECK(ends.server.links.statistics().bytes_sent > 4 * count);
}

TEST_CASE("what_is_sent_before_the_link_opens_follows_the_handshake_in_order") {
  side server, client;
  const link_id link = client.links.connect(server.listen());
  for (std::uint64_t i = 0; i < 100; ++i)
    client.links.send(link, push_reply{i, {}});
  REQUIRE(server.wait_received(100));
  for (std::uint64_t i = 0; i < 100; ++i)
    CHECK(std::get<push_reply>(server.received[i]).request == i);
}

TEST_CASE("frames_are_found_however_their_bytes_are_cut") {
  side server;
  const bare_peer peer{server.listen()};
  std::vector<std::byte> stream = bytes_of(hello_of());
  const std::vector<message> sent{push_of(1, 3), push_of(2, 5000), push_reply{3, {}},
                                  push_of(4, 0)};
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

TEST_CASE("a_host_name_is_resolved") {
  side server, client;
  client.links.connect({"localhost", server.listen().port});
  CHECK(client.wait_opened());
}

// -- who may talk -----------------------------------------------------------------------------

TEST_CASE("strangers_are_refused_with_the_reason_at_both_ends") {
  struct stranger {
    const char* what;
    hello acceptor;
    hello connector;
    errc code;
  };
  hello newer = hello_of();
  newer.version = wire::protocol_version + 1;
  const std::vector<stranger> strangers{
    {"newer connector", hello_of(), newer, errc::version_mismatch},
    {"newer acceptor", newer, hello_of(), errc::version_mismatch},
    {"other job", hello_of(7), hello_of(8), errc::wrong_job},
    {"other secret", hello_of(7, 1), hello_of(7, 2), errc::wrong_job}};
  for (const stranger& each : strangers) {
    CAPTURE(each.what);
    side server{each.acceptor}, client{each.connector};
    client.links.connect(server.listen());
    REQUIRE(client.wait_lost());
    REQUIRE(server.wait_rejected());
    MESSAGE(server.rejected[0].text);
    MESSAGE(client.lost[0].text);
    CHECK(server.rejected[0].code == each.code);
    CHECK(client.lost[0].code == each.code);
    CHECK(client.opened.empty());
    CHECK(server.opened.empty());
    CHECK(contains(server.rejected[0].text, "127.0.0.1:"));
  }
}

TEST_CASE("a_peer_without_the_secret_is_let_in_and_not_told_it") {
  side server{hello_of(7, 12345)}, client{hello_of(7, 0)};
  client.links.connect(server.listen());
  REQUIRE(client.wait_opened());
  CHECK(client.opened[0].peer.secret == 0);
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
    if (i % 2 == 0) // Looks like a frame, but too long for a hello, or its head is noise.
      words = {1, i % 4 == 0 ? 4u : words[1] % 100'000, i % 4 == 0 ? 0 : words[2], 0};
    REQUIRE(peer.send(std::as_bytes(std::span{words})));
    REQUIRE(peer.wait_end());
  }
  REQUIRE(server.wait_rejected(1000));
  CHECK(server.rejected[0].code == errc::malformed);
  CHECK(contains(server.rejected[0].text, " does not speak this protocol"));
  side client;
  client.links.connect(where);
  CHECK(client.wait_opened());
  CHECK(server.opened.size() <= 1);
}

TEST_CASE("only_a_hello_opens_a_link") {
  side server;
  const bare_peer peer{server.listen()};
  REQUIRE(peer.send(push_reply{1, {}}));
  CHECK(peer.wait_end());
  REQUIRE(server.wait_rejected());
  CHECK(server.received.empty());
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
  ends.server.links.send(ends.to_client, refusal{{errc::fenced, "a newer\nincarnation"}});
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

// -- time -------------------------------------------------------------------------------------

TEST_CASE("a_silent_or_dripping_connection_is_closed_at_the_handshake_deadline") {
  side server{hello_of(), {.handshake_timeout = 200ms}};
  const endpoint where = server.listen();
  const auto begin = clock::now();
  const bare_peer silent{where}, dripping{where};
  const auto drops = bytes_of(hello_of());
  for (std::size_t i = 0; i < 8; ++i) {
    CHECK(dripping.send(std::span{drops}.subspan(i, 1)));
    std::this_thread::sleep_for(10ms);
  }
  CHECK(silent.wait_end());
  CHECK(dripping.wait_end());
  CHECK(clock::now() - begin >= 190ms);
  CHECK(clock::now() - begin < 2s);
  REQUIRE(server.wait_rejected(2));
  CHECK(contains(server.rejected[0].text, "no hello within 200 ms"));
}

TEST_CASE("an_acceptor_that_never_answers_is_lost_at_the_handshake_deadline") {
  const auto listener = make_listener({"127.0.0.1", 0});
  REQUIRE(listener);
  const detail::descriptor owned{*listener};
  side client{hello_of(), {.handshake_timeout = 100ms}};
  client.links.connect(*local_endpoint(owned.get()));
  REQUIRE(client.wait_lost());
  CHECK(client.lost[0].code == errc::peer_lost);
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
  pair_of_sides ends{{.silence_timeout = 400ms}};
  REQUIRE(ends.ready);
  std::this_thread::sleep_for(1500ms);
  CHECK(ends.client.lost.empty());
  CHECK(ends.server.lost.empty());
  ends.client.links.send(ends.to_server, push_reply{1, {}});
  CHECK(ends.server.wait_received(1));
  // Signs of life cost a few bytes a second.
  CHECK(ends.client.links.statistics().bytes_sent < 2000);
}

// -- ends -------------------------------------------------------------------------------------

TEST_CASE("a_killed_process_is_lost_at_once") {
  int tell[2];
  REQUIRE(::pipe(tell) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    side server;
    const std::uint16_t port = server.listen().port;
    (void)!::write(tell[1], &port, sizeof port);
    ::pause();
    ::_exit(0);
  }
  std::uint16_t port = 0;
  REQUIRE(::read(tell[0], &port, sizeof port) == sizeof port);
  side client;
  client.links.connect({"127.0.0.1", port});
  REQUIRE(client.wait_opened());
  ::kill(child, SIGKILL);
  const auto begin = clock::now();
  REQUIRE(client.wait_lost());
  CHECK(clock::now() - begin < 1s);
  CHECK(client.lost[0].code == errc::peer_lost);
  ::waitpid(child, nullptr, 0);
  ::close(tell[0]);
  ::close(tell[1]);
}

TEST_CASE("close_sends_what_was_queued_and_reports_lost_once_at_each_end") {
  pair_of_sides ends;
  REQUIRE(ends.ready);
  for (std::uint64_t i = 0; i < 8; ++i)
    ends.client.links.send(ends.to_server, push_of(i, std::size_t{1} << 20));
  ends.client.links.close(ends.to_server);
  ends.client.links.close(ends.to_server);
  ends.client.links.send(ends.to_server, push_of(9, 1));
  REQUIRE(ends.server.wait_lost());
  REQUIRE(ends.client.wait_lost());
  CHECK(ends.server.received.size() == 8);
  ends.client.links.send(ends.to_server, push_of(9, 1));
  std::this_thread::sleep_for(50ms);
  CHECK(ends.client.lost.size() == 1);
  CHECK(ends.server.lost.size() == 1);
  CHECK_FALSE(ends.client.broken_promise);
  CHECK_FALSE(ends.server.broken_promise);
}

TEST_CASE("close_gives_up_on_a_peer_that_does_not_read") {
  side server;
  const bare_peer peer{server.listen()};
  REQUIRE(peer.send(hello_of()));
  REQUIRE(server.wait_opened());
  server.links.send(server.only_link(), push_of(1, std::size_t{16} << 20));
  const auto begin = clock::now();
  server.links.close(server.only_link());
  REQUIRE(server.wait_lost());
  CHECK(clock::now() - begin >= 900ms);
  CHECK(clock::now() - begin < 3s);
}

TEST_CASE("a_peer_that_does_not_read_is_lost_when_the_queue_is_full") {
  side server{hello_of(), {.queue_bytes_max = std::size_t{32} << 20}};
  const bare_peer peer{server.listen()};
  REQUIRE(peer.send(hello_of()));
  REQUIRE(server.wait_opened());
  const push_request mega = push_of(1, std::size_t{1} << 18);
  for (int i = 0; i < 64; ++i)
    server.links.send(server.only_link(), mega);
  REQUIRE(server.wait_lost());
  CHECK(server.lost[0].code == errc::peer_lost);
  CHECK(contains(server.lost[0].text, "does not read"));
  CHECK(server.wait([&] { return mega.update.pieces[0].values.use_count() == 1; }));
}

TEST_CASE("connecting_to_a_closed_port_is_lost") {
  side client;
  const endpoint where = closed_port();
  client.links.connect(where);
  client.links.connect({"no.such.host.invalid", 1});
  REQUIRE(client.wait_lost(2));
  CHECK(client.lost[0].code == errc::peer_lost);
  CHECK(contains(client.lost[0].text, to_string(where)));
  CHECK(contains(client.lost[0].text, "refused"));
}

TEST_CASE("a_port_in_use_is_told_with_its_address") {
  side first, second;
  const endpoint where = first.listen();
  const auto again = second.links.listen(where);
  REQUIRE_FALSE(again);
  CHECK(again.error().code == errc::in_use);
  CHECK(contains(again.error().text, to_string(where)));
  const auto foreign = second.links.listen({"192.0.2.1", 0});
  REQUIRE_FALSE(foreign);
  CHECK(foreign.error().code == errc::invalid_argument);
}

TEST_CASE("listens_on_an_inherited_socket_again_and_again") {
  const auto made = make_listener({"127.0.0.1", 0});
  REQUIRE(made);
  const detail::descriptor kept{*made};
  endpoint where;
  for (int i = 0; i < 2; ++i) {
    side server, client;
    const auto listening = server.links.listen_on(::dup(kept.get()));
    REQUIRE(listening);
    where = *listening;
    client.links.connect(where);
    CHECK(client.wait_opened());
  }
  side other;
  CHECK_FALSE(other.links.listen_on(::dup(0)));
}

TEST_CASE("the_destructor_does_not_wait_for_peers") {
  auto server = std::make_unique<side>();
  const endpoint where = server->listen();
  const bare_peer peer{where}, silent{where};
  REQUIRE(peer.send(hello_of()));
  REQUIRE(server->wait_opened());
  for (int i = 0; i < 8; ++i)
    server->links.send(server->only_link(), push_of(1, std::size_t{1} << 20));
  server->links.connect(where);
  const auto begin = clock::now();
  server.reset();
  CHECK(clock::now() - begin < 500ms);
}

TEST_CASE("the_destructor_reports_each_link_as_lost") {
  std::atomic<int> lost = 0;
  {
    side server;
    link_events events;
    events.lost = [&lost](link_id, const failure&) { ++lost; };
    transport client{hello_of(), events};
    const endpoint where = server.listen();
    client.connect(where);
    client.connect(where);
    REQUIRE(server.wait_opened(2));
  }
  CHECK(lost == 2);
}

TEST_CASE("a_callback_may_send_connect_and_close") {
  side server;
  const endpoint where = server.listen();
  std::atomic<int> echoes = 0, lost = 0;
  transport* self = nullptr;
  std::atomic<bool> set = false;
  link_events events;
  events.opened = [&](link_id link, const hello&, const std::string&) {
    while (!set)
      std::this_thread::yield();
    self->send(link, push_reply{1, {}});
    self->close(link);
  };
  events.lost = [&](link_id, const failure&) {
    if (++lost < 5)
      self->connect(where);
  };
  transport client{hello_of(), events};
  self = &client;
  set = true;
  client.connect(where);
  CHECK(server.wait_received(5));
  CHECK(server.wait_lost(5));
}

TEST_CASE("lack_of_descriptors_neither_spins_nor_lasts") {
  side server;
  const endpoint where = server.listen();
  const auto to = detail::resolve(where);
  std::vector<detail::descriptor> peers;
  for (int i = 0; i < 4; ++i)
    peers.emplace_back(::socket(AF_INET, SOCK_STREAM, 0));
  rlimit before;
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{static_cast<rlim_t>(peers.back().get()), before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
  const auto greeting = bytes_of(hello_of());
  for (const auto& peer : peers) {
    CHECK(::connect(peer.get(), to->front().get(), to->front().size_bytes) == 0);
    CHECK(::send(peer.get(), greeting.data(), greeting.size(), 0) > 0);
  }
  const double used = processor_seconds();
  std::this_thread::sleep_for(400ms);
  CHECK(processor_seconds() - used < 0.2);
  CHECK(server.opened.empty());
  setrlimit(RLIMIT_NOFILE, &before);
  CHECK(server.wait_opened(4));
}

TEST_CASE("neither_descriptors_nor_threads_leak") {
  { side warm_up; }
  const std::size_t descriptors = entries("/proc/self/fd"), threads = entries("/proc/self/task");
  for (int i = 0; i < 20; ++i) {
    pair_of_sides ends;
    REQUIRE(ends.ready);
    const bare_peer peer{ends.server.listen()};
    ends.client.links.connect(closed_port());
    ends.client.links.send(ends.to_server, push_of(1, 100'000));
    if (i % 2 == 0)
      ends.client.links.close(ends.to_server);
    REQUIRE(ends.client.wait_lost());
  }
  CHECK(entries("/proc/self/fd") == descriptors);
  CHECK(entries("/proc/self/task") == threads);
}
