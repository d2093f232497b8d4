#include "tests/actors/transport/tls_fixture.hpp"
#include "tests/actors/transport_fixture.hpp" // pattern, contains

#include "doctest/doctest.h"

#include <atomic>
#include <cstring>
#include <random>
#include <thread>

namespace tls_stream_test {

using namespace troupe;
using namespace troupe::test;

namespace {

/// A connector that is a worker and an acceptor that is a server.
struct two_ends {
  explicit two_ends(std::pair<stream_ptr, stream_ptr> sockets,
                    std::uint64_t records_per_key = tls_stream::key_records_max)
      : worker(job.context(role::worker), std::move(sockets.first), link_side::connector, {},
               records_per_key),
        server(job.context(role::server), std::move(sockets.second), link_side::acceptor, {},
               records_per_key) {}

  bool shake_hands() {
    return drive(worker, server, [&] { return worker.established && server.established; });
  }
  bool run(auto done) { return drive(worker, server, done); }

  job_certificates job;
  tls_end worker, server;
};

/// Moves the bytes that arrive at one socket to the other, as slowly as a test wants.
struct relay {
  explicit relay(stream_ptr a, stream_ptr b) : ends{std::move(a), std::move(b)} {}

  /// Moves at most `size_max` bytes from end `from` to the other; returns them.
  std::string carry(int from, std::size_t size_max) {
    std::string bytes(size_max, '\0');
    iovec place{bytes.data(), bytes.size()};
    const auto got = ends[from]->read({&place, 1});
    bytes.resize(got.bytes);
    if (!bytes.empty())
      write_text(*ends[1 - from], bytes);
    return bytes;
  }

  stream_ptr ends[2];
};

/// Writes and reads 24 MiB at both ends, each on threads of its own.
void exchange(std::uint64_t records_per_key) {
  constexpr std::size_t total = std::size_t{24} << 20;
  two_ends ends{tcp_pair(), records_per_key};
  REQUIRE(ends.shake_hands());
  const auto values = pattern(total / sizeof(float), 3);
  const auto* const bytes = reinterpret_cast<const std::byte*>(values.get());
  std::atomic<bool> failed = false;
  const auto wait = [](const tls_stream& at, short events) {
    pollfd waited{at.poll_descriptor(), events, 0};
    ::poll(&waited, 1, 100);
  };
  const auto write_all = [&](tls_stream& to) {
    std::minstd_rand random{5};
    for (std::size_t at = 0; at < total && !failed;) {
      const std::size_t head = std::min<std::size_t>(1 + random() % 300, total - at);
      const std::size_t body = std::min<std::size_t>(random() % 300'000, total - at - head);
      auto* const from = const_cast<std::byte*>(bytes + at);
      std::array parts{iovec{from, head}, iovec{from + head, body}};
      const auto went = to.write(parts);
      at += went.bytes;
      failed = failed || went.how == transfer::status::failed;
      if (went.how == transfer::status::would_block)
        wait(to, POLLOUT);
    }
    while (to.interest(false) != EPOLLIN && !failed) {
      wait(to, POLLOUT);
      to.write({});
    }
  };
  const auto read_all = [&](tls_stream& from) {
    std::vector<std::byte> place(200'000);
    std::size_t at = 0;
    while (at < total && !failed) {
      iovec where{place.data(), place.size()};
      const auto got = from.read({&where, 1});
      failed = failed || got.how == transfer::status::failed
               || std::memcmp(place.data(), bytes + at, got.bytes) != 0;
      at += got.bytes;
      if (got.how == transfer::status::would_block)
        wait(from, POLLIN);
    }
  };
  std::vector<std::thread> threads;
  for (auto* const end : {&ends.worker.stream, &ends.server.stream}) {
    threads.emplace_back([&, end] { write_all(*end); });
    threads.emplace_back([&, end] { read_all(*end); });
  }
  for (auto& each : threads)
    each.join();
  CHECK_FALSE(failed);
}

} // namespace

TEST_CASE("tls: what one end writes the other reads, and each knows the other's role") {
  for (const bool tcp : {false, true}) {
    CAPTURE(tcp);
    two_ends ends{tcp ? tcp_pair() : socket_pair()};
    CHECK(ends.worker.stream.proved_roles()->empty());
    REQUIRE(ends.shake_hands());
    CHECK(write_text(ends.worker.stream, "hello").bytes == 5);
    REQUIRE(ends.run([&] { return ends.server.got == "hello"; }));
    CHECK(*ends.server.stream.proved_roles() == std::vector{role::worker});
    CHECK(*ends.worker.stream.proved_roles() == std::vector{role::server});
    CHECK(write_text(ends.server.stream, "welcome").bytes == 7);
    REQUIRE(ends.run([&] { return ends.worker.got == "welcome"; }));
    CHECK_FALSE(ends.worker.over());
  }
}

TEST_CASE("tls: nothing can be read on the way, and nothing is sent to a peer without proof") {
  job_certificates job, other;
  for (const auto* theirs : {&job, &other}) {
    CAPTURE(theirs == &other);
    auto sockets = socket_pair();
    auto beyond = socket_pair();
    relay wire{std::move(sockets.second), std::move(beyond.first)};
    tls_end worker{job.context(role::worker), std::move(sockets.first), link_side::connector};
    tls_end server{theirs->context(role::server), std::move(beyond.second), link_side::acceptor};
    std::string seen;
    bool said = false;
    drive(worker, server, [&] {
      if (worker.established && !std::exchange(said, true))
        write_text(worker.stream, "the secret of the job");
      seen += wire.carry(0, 10'000) + wire.carry(1, 10'000);
      return !server.got.empty() || server.over();
    });
    CHECK(server.got == (theirs == &job ? "the secret of the job" : ""));
    CHECK(seen.size() > 500);
    CHECK_FALSE(contains(seen, "secret"));
    CHECK_FALSE(contains(seen, "urn:troupe:role"));
  }
}

TEST_CASE("tls: a link whose bytes come one by one is a link like any other") {
  auto sockets = socket_pair();
  auto beyond = socket_pair();
  relay wire{std::move(sockets.second), std::move(beyond.first)};
  job_certificates job;
  tls_end worker{job.context(role::worker), std::move(sockets.first), link_side::connector};
  tls_end server{job.context(role::server), std::move(beyond.second), link_side::acceptor};
  bool greeted = false, answered = false;
  CHECK(drive(worker, server, [&] {
    wire.carry(0, 1);
    wire.carry(1, 1);
    if (worker.established && !std::exchange(greeted, true))
      write_text(worker.stream, "hello");
    if (server.got == "hello" && !std::exchange(answered, true))
      write_text(server.stream, "welcome");
    return worker.got == "welcome";
  }));
}

TEST_CASE("tls: scattered and gathered parts of all sizes keep their order") {
  two_ends ends{socket_pair()};
  REQUIRE(ends.shake_hands());
  std::minstd_rand random{7};
  std::string all;
  for (int i = 0; i < 700'000; ++i)
    all += static_cast<char>(random());
  std::vector<iovec> parts;
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t size = std::min(random() % 3 == 0   ? random() % 90'000
                                      : random() % 2 == 0 ? random() % 40
                                                          : 16'384 + random() % 3,
                                      all.size() - at);
    parts.push_back({all.data() + at, size});
    at += size;
  }
  std::string got;
  std::size_t sent = 0;
  for (int round = 0; got.size() < all.size() && round < 100'000; ++round) {
    std::vector<iovec> rest;
    std::size_t at = 0;
    for (const iovec& part : parts) {
      const std::size_t skip = std::clamp(sent, at, at + part.iov_len) - at;
      rest.push_back({static_cast<char*>(part.iov_base) + skip, part.iov_len - skip});
      at += part.iov_len;
    }
    sent += ends.worker.stream.write(rest).bytes;
    std::string first(1 + random() % 100, '\0'), second(random() % 70'000, '\0');
    std::array places{iovec{first.data(), first.size()}, iovec{nullptr, 0},
                      iovec{second.data(), second.size()}};
    const auto taken = ends.server.stream.read(places);
    if (taken.how == transfer::status::moved)
      got += (first + second).substr(0, taken.bytes);
  }
  CHECK(sent == all.size());
  CHECK((got == all));
  CHECK_FALSE(ends.worker.unsent());
}

TEST_CASE("tls: a full socket blocks the writer, and what it took leaves later") {
  two_ends ends{socket_pair()};
  REQUIRE(ends.shake_hands());
  const std::string much(100'000, 'x');
  std::size_t sent = 0;
  transfer went;
  for (int i = 0; i < 1000 && went.how == transfer::status::moved; ++i) {
    went = write_text(ends.worker.stream, much);
    sent += went.bytes;
  }
  CHECK(went.how == transfer::status::would_block);
  CHECK(ends.worker.unsent());
  CHECK(ends.run([&] { return ends.server.got.size() == sent; }));
  CHECK_FALSE(ends.worker.unsent());
}

TEST_CASE("tls: what left the socket and was not read yet is told of") {
  two_ends ends{socket_pair()};
  REQUIRE(ends.shake_hands());
  write_text(ends.worker.stream, "hello");
  char place[3];
  iovec where{place, sizeof place};
  REQUIRE(ends.server.stream.read({&where, 1}).bytes == 3);
  CHECK(ends.server.stream.buffered());
  CHECK(ends.server.stream.readable());
  REQUIRE(ends.server.stream.read({&where, 1}).bytes == 2);
  CHECK_FALSE(ends.server.stream.buffered());
  CHECK_FALSE(ends.server.stream.readable());
}

TEST_CASE("tls: an end that is told is an end, one that is not is a failure") {
  for (const bool tcp : {false, true}) {
    CAPTURE(tcp);
    two_ends ends{tcp ? tcp_pair() : socket_pair()};
    REQUIRE(ends.shake_hands());
    write_text(ends.worker.stream, "the last words");
    ends.worker.stream.finish_writing();
    REQUIRE(ends.run([&] { return ends.server.over(); }));
    CHECK(ends.server.got == "the last words");
    CHECK(ends.server.last.how == transfer::status::ended);
    // The other direction stays open.
    CHECK(write_text(ends.server.stream, "an answer").bytes == 9);
    CHECK(ends.run([&] { return ends.worker.got == "an answer"; }));

    two_ends cut{tcp ? tcp_pair() : socket_pair()};
    REQUIRE(cut.shake_hands());
    cut.worker.stream.reset();
    REQUIRE(drive(cut.server, cut.server, [&] { return cut.server.over(); }));
    CHECK(cut.server.last.how == transfer::status::failed);
    CHECK(cut.server.reason().code == errc::peer_lost);
    CHECK(cut.server.why() == "closed the connection without a goodbye");
  }
}

TEST_CASE("tls: a handshake that is cut anywhere fails at both ends and is no reason to give up") {
  for (const std::size_t bytes : {0, 1, 5, 100, 300, 800, 1500}) {
    CAPTURE(bytes);
    auto sockets = socket_pair();
    auto beyond = socket_pair();
    relay wire{std::move(sockets.second), std::move(beyond.first)};
    job_certificates job;
    tls_end worker{job.context(role::worker), std::move(sockets.first), link_side::connector};
    tls_end server{job.context(role::server), std::move(beyond.second), link_side::acceptor};
    std::size_t carried = 0;
    drive(worker, server, [&] {
      for (const int from : {0, 1})
        carried += wire.carry(from, std::min<std::size_t>(bytes - carried, 50)).size();
      return carried >= bytes;
    });
    wire.ends[0]->reset();
    wire.ends[1]->reset();
    REQUIRE(drive(worker, server, [&] { return worker.over() && server.over(); }));
    for (const auto* end : {&worker, &server}) {
      CHECK(end->last.how == transfer::status::failed);
      CHECK(end->reason().code == errc::peer_lost);
      CAPTURE(end->why());
      CHECK((end->why() == "closed the connection during the TLS handshake"
             || end->why() == "is lost: Connection reset by peer"));
    }
  }
}

TEST_CASE("tls: new keys on the way cost nothing but a message") {
  job_certificates job;
  auto sockets = socket_pair();
  const auto shown = job.files("worker");
  bare_tls_peer worker{std::move(sockets.first), link_side::connector, job.path() / "ca.pem",
                       &shown};
  tls_end server{job.context(role::server), std::move(sockets.second), link_side::acceptor};
  REQUIRE(drive(worker, server, [&] { return server.established; }));
  for (int i = 0; i < 20; ++i) {
    worker.ask_for_new_keys();
    worker.write("x");
    write_text(server.stream, "y");
  }
  CHECK(drive(worker, server, [&] {
    return server.got == std::string(20, 'x') && worker.got == std::string(20, 'y');
  }));
  worker.say_goodbye();
  REQUIRE(drive(worker, server, [&] { return server.over(); }));
  CHECK(server.last.how == transfer::status::ended);
}

TEST_CASE("tls: a writer changes its key after so many records, large or small") {
  job_certificates job;
  auto sockets = socket_pair();
  const auto shown = job.files("worker");
  bare_tls_peer worker{std::move(sockets.first), link_side::connector, job.path() / "ca.pem",
                       &shown};
  tls_end server{job.context(role::server), std::move(sockets.second), link_side::acceptor, {}, 4};
  REQUIRE(drive(worker, server, [&] { return server.established; }));
  for (int i = 0; i < 21; ++i) {
    write_text(server.stream, "y");
    worker.write("x");
  }
  CHECK(drive(worker, server, [&] { return worker.got.size() == 21 && server.got.size() == 21; }));
  CHECK(worker.new_keys == 5);
  write_text(server.stream, std::string(10 * 16384, 'z')); // Records 22 to 31.
  CHECK(drive(worker, server, [&] { return worker.got.size() == 21 + 10 * 16384; }));
  CHECK(worker.new_keys == 7);
  CHECK(worker.why.empty());
}

TEST_CASE("tls: a reader and a writer at each end at the same time lose nothing") {
  exchange(tls_stream::key_records_max);
}

TEST_CASE("tls: nor do they while both directions change their keys again and again") {
  exchange(3);
}

} // namespace tls_stream_test
