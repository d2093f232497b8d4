// Tests links between transports that have certificates, or should have.
#include "tests/actors/transport/tls_fixture.hpp"
#include "tests/actors/transport_fixture.hpp"

#include "doctest/doctest.h"

#include <cstring>

namespace tls_link_test {

using namespace troupe;
using namespace troupe::test;

namespace {

hello hello_from(role who) {
  hello made = hello_of();
  made.from.role = who;
  return made;
}

/// Returns options for links over TCP, as between hosts.
transport_options encrypted(std::shared_ptr<const tls_context> context) {
  return {.unix_sockets = false, .tls = std::move(context)};
}

/// A link that is refused, and the errors on both sides.
struct refused_link {
  refused_link(side& acceptor, side& connector) {
    connector.links.connect(acceptor.listen());
    REQUIRE(connector.wait_lost());
    REQUIRE(acceptor.wait_rejected());
    CHECK(acceptor.opened.empty());
    CHECK(connector.opened.empty());
    here = acceptor.rejected[0];
    there = connector.lost[0];
    CAPTURE(here.text);
    CAPTURE(there.text);
    CHECK(acceptor.rejected.size() == 1);
    CHECK(here.text.rfind("127.0.0.1:", 0) == 0);
    CHECK(there.text.rfind("127.0.0.1:", 0) == 0);
  }

  failure here, there;
};

} // namespace

TEST_CASE("tls: messages and large tensors go both ways over an encrypted link") {
  const job_certificates job;
  side server{hello_from(role::server), encrypted(job.context(role::server))};
  side worker{hello_from(role::worker), encrypted(job.context(role::worker))};
  const auto to_server = worker.links.connect(server.listen());
  REQUIRE(worker.wait_opened());
  REQUIRE(server.wait_opened());
  const auto to_worker = server.only_link();
  constexpr std::size_t floats = std::size_t{3} << 20;
  for (std::uint64_t i = 0; i < 4; ++i) {
    worker.links.send(to_server, push_of(i, floats, static_cast<std::uint32_t>(i)));
    server.links.send(to_worker, push_of(i, floats, static_cast<std::uint32_t>(i)));
  }
  for (std::uint64_t i = 4; i < 1000; ++i) {
    worker.links.send(to_server, push_of(i, 3));
    server.links.send(to_worker, push_of(i, 3));
  }
  for (auto* const each : {&server, &worker}) {
    REQUIRE(each->wait_received(1000));
    for (std::uint64_t i = 0; i < 1000; ++i) {
      const auto* const got = std::get_if<request_list>(&each->received[i]);
      REQUIRE(got != nullptr);
      CHECK(got->items.at(0).number == i);
    }
    const auto& last = only_request(each->received[3]).what.push->pieces[0];
    CHECK(std::memcmp(last.values.get(), pattern(floats, 3).get(), floats * sizeof(float)) == 0);
  }
}

TEST_CASE("tls: a role that the certificate lacks is refused, and both sides hear why") {
  const job_certificates job;
  side coordinator{hello_from(role::coordinator), encrypted(job.context(role::coordinator))};
  side liar{hello_from(role::server), encrypted(job.context(role::worker))};
  const refused_link said{coordinator, liar};
  CHECK(said.here.code == errc::untrusted);
  CHECK(said.there.code == errc::untrusted);
  CHECK(contains(said.here.text, " claims to be server with a certificate for worker"));
  CHECK(contains(said.there.text,
                 " refused the link: it does not take us for server with a certificate for "
                 "worker"));
}

TEST_CASE("tls: who answers in a role that its certificate lacks is refused as well") {
  const job_certificates job;
  side liar{hello_from(role::coordinator), encrypted(job.context(role::worker))};
  side server{hello_from(role::server), encrypted(job.context(role::server))};
  server.links.connect(liar.listen());
  REQUIRE(server.wait_lost());
  CHECK(server.lost[0].code == errc::untrusted);
  CHECK(contains(server.lost[0].text, " claims to be coordinator with a certificate for worker"));
  REQUIRE(liar.wait_lost()); // The link was open on its side.
  CHECK(contains(liar.lost[0].text, "does not take us for coordinator with a certificate for"));
}

TEST_CASE("tls: another authority is told on both sides, and is no reason to try again") {
  const job_certificates job, other;
  side server{hello_from(role::server), encrypted(job.context(role::server))};
  side worker{hello_from(role::worker), encrypted(other.context(role::worker))};
  const refused_link said{server, worker};
  CHECK(contains(said.there.text, "showed a certificate that is of another authority than ca.pem"));
  CHECK(contains(said.here.text, "does not accept our certificate: it is of another authority"));
  CHECK(reaction_to(said.there.code) == reaction::stop);
}

TEST_CASE("tls: an acceptor that the connector trusts and not the other way round says so") {
  const job_certificates job;
  // This authority knows the server and did not sign the worker's certificate.
  const job_certificates other;
  other.write("worker.pem", other.authority().certificate());
  std::ofstream{other.path() / "both.pem"} << other.authority().certificate()
                                           << job.authority().certificate();
  auto files = other.files("server");
  const auto mine = *tls_context::load(files, role::server);
  files = job.files("worker");
  files.authority = other.path() / "both.pem";
  side server{hello_from(role::server), encrypted(mine)};
  side worker{hello_from(role::worker), encrypted(*tls_context::load(files, role::worker))};
  const refused_link said{server, worker};
  CHECK(contains(said.here.text, "showed a certificate that is of another authority than ca.pem"));
  CHECK(contains(said.there.text, "does not accept our certificate: it is of another authority"));
  CHECK(said.there.code == errc::untrusted);
}

TEST_CASE("tls: plain text on one side is found out on both") {
  const job_certificates job;
  const transport_options plain{.unix_sockets = false};
  side tls_server{hello_from(role::server), encrypted(job.context(role::server))};
  side plain_worker{hello_from(role::worker), plain};
  const refused_link first{tls_server, plain_worker};
  CHECK(contains(first.here.text, "does not speak TLS 1.3: is it started with --tls DIR?"));
  CHECK(contains(first.there.text, "speaks TLS: start both sides with --tls DIR"));
  CHECK(first.there.code == errc::malformed);
  side plain_server{hello_from(role::server), plain};
  side tls_worker{hello_from(role::worker), encrypted(job.context(role::worker))};
  const refused_link second{plain_server, tls_worker};
  CHECK(contains(second.here.text, "speaks TLS: start both sides with --tls DIR"));
  CHECK(contains(second.there.text, "does not speak TLS 1.3: is it started with --tls DIR?"));
  CHECK(second.there.code == errc::malformed);
}

TEST_CASE("tls: a peer that never finishes its handshake is closed at the deadline") {
  const job_certificates job;
  auto options = encrypted(job.context(role::server));
  options.handshake_timeout = 200ms;
  side server{hello_from(role::server), options};
  const bare_peer silent{server.listen()};
  CHECK(silent.wait_end());
  CHECK(server.wait_rejected());
}

TEST_CASE("tls: a link that is closed says goodbye, one that dies does not") {
  const job_certificates job;
  side server{hello_from(role::server), encrypted(job.context(role::server))};
  const auto where = server.listen();
  {
    side worker{hello_from(role::worker), encrypted(job.context(role::worker))};
    const auto link = worker.links.connect(where);
    REQUIRE(worker.wait_opened());
    worker.links.send(link, push_of(1, 100));
    worker.links.close(link);
    REQUIRE(server.wait_lost());
    CHECK(server.received.size() == 1);
    CHECK(contains(server.lost[0].text, " closed the connection"));
    CHECK_FALSE(contains(server.lost[0].text, "goodbye"));
    worker.links.connect(where);
    REQUIRE(worker.wait_opened(2));
    REQUIRE(server.wait_opened(2));
  }
  REQUIRE(server.wait_lost(2));
  CHECK(contains(server.lost[1].text, " closed the connection without a goodbye"));
  CHECK(server.lost[1].code == errc::peer_lost);
}

} // namespace tls_link_test
