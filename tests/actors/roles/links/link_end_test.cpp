// Tests how links and transports end, and that they leave no resources behind.
#include "tests/actors/transport_fixture.hpp"

#include "doctest/doctest.h"

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>

namespace link_end_test {

using namespace troupe;
using namespace troupe::test;

namespace {

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

/// Returns a port on which no process listens.
endpoint closed_port() {
  const auto taken = make_listener({"127.0.0.1", 0});
  const auto where = *local_endpoint(*taken);
  ::close(*taken);
  return where;
}

} // namespace

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
  REQUIRE(client.wait_lost());
  CHECK(client.lost[0].code == errc::peer_lost);
  CHECK_FALSE(contains(client.lost[0].text, "said nothing")); // The end is seen, not the silence.
  ::waitpid(child, nullptr, 0);
  ::close(tell[0]);
  ::close(tell[1]);
}

TEST_CASE("close_sends_what_was_queued_and_reports_lost_once_at_each_end") {
  for (const link_kind& kind : link_kinds()) {
    CAPTURE(kind.name);
    pair_of_sides ends{kind.options};
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
}

TEST_CASE("close_gives_up_on_a_peer_that_does_not_read") {
  side server;
  const bare_peer peer{server.listen()};
  REQUIRE(peer.send(hello_of()));
  REQUIRE(server.wait_opened());
  server.links.send(server.only_link(), push_of(1, std::size_t{16} << 20));
  const auto begin = steady_clock::now();
  server.links.close(server.only_link());
  REQUIRE(server.wait_lost());
  CHECK(steady_clock::now() - begin >= 900ms);
}

TEST_CASE("a_peer_that_does_not_read_is_lost_when_the_queue_is_full") {
  side server{hello_of(), {.queue_bytes_max = std::size_t{32} << 20}};
  const bare_peer peer{server.listen()};
  REQUIRE(peer.send(hello_of()));
  REQUIRE(server.wait_opened());
  const request_message mega = push_of(1, std::size_t{1} << 18);
  for (int i = 0; i < 64; ++i)
    server.links.send(server.only_link(), mega);
  REQUIRE(server.wait_lost());
  CHECK(server.lost[0].code == errc::peer_lost);
  CHECK(contains(server.lost[0].text, "does not read"));
  CHECK(server.wait([&] { return mega.what.push->pieces[0].values.use_count() == 1; }));
}

TEST_CASE("connecting_to_a_closed_port_is_lost") {
  side client;
  const endpoint where = closed_port();
  client.links.connect(where);
  REQUIRE(client.wait_lost());
  CHECK(client.lost[0].code == errc::peer_lost);
  CHECK(contains(client.lost[0].text, to_string(where)));
  CHECK(contains(client.lost[0].text, "refused"));
  client.links.connect({"no.such.host.invalid", 1});
  REQUIRE(client.wait_lost(2));
  CHECK(contains(client.lost[1].text, "no.such.host.invalid"));
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
  const descriptor kept{*made};
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
  steady_clock::duration shortest = 1h; // Shortest of five: the machine may stand still.
  for (int round = 0; round < 5; ++round) {
    auto server = std::make_unique<side>();
    const endpoint where = server->listen();
    const bare_peer peer{where}, silent{where};
    REQUIRE(peer.send(hello_of()));
    REQUIRE(server->wait_opened());
    for (int i = 0; i < 8; ++i)
      server->links.send(server->only_link(), push_of(1, std::size_t{1} << 20));
    server->links.connect(where);
    const auto begin = steady_clock::now();
    server.reset();
    shortest = std::min<steady_clock::duration>(shortest, steady_clock::now() - begin);
  }
  CHECK(shortest < 500ms); // A wait for a peer takes 1 s.
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
    self->send(link, reply_message{1, {push_reply{}, {}}});
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
  std::vector<descriptor> peers;
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
  // A joined thread stays in the list for a moment.
  CHECK(wait_until([&] { return entries("/proc/self/fd") <= descriptors; }));
  CHECK(wait_until([&] { return entries("/proc/self/task") <= threads; }));
}

} // namespace link_end_test
