// Tests which peers a process trusts, and the errors on both sides where it does not.
#include "tests/actors/transport/tls_fixture.hpp"
#include "tests/actors/transport_fixture.hpp" // contains

#include "doctest/doctest.h"

#include <array>
#include <random>
#include <string>
#include <utility>

namespace tls_trust_test {

using namespace troupe;
using namespace troupe::test;

namespace {

std::string loading(const tls_files& files, role who = role::worker) {
  const auto loaded = tls_context::load(files, who);
  return loaded ? "" : loaded.error().text;
}

/// The errors at both ends of a connection.
struct outcome {
  failure connector, acceptor;
};

outcome meet(tls_end& connector, tls_end& acceptor) {
  const auto finish = [](tls_end& end) {
    if (end.over())
      end.stream.finish_writing();
    return end.over();
  };
  REQUIRE(drive(connector, acceptor, [&] { return finish(connector) & finish(acceptor); }));
  return {connector.reason(), acceptor.reason()};
}

} // namespace

TEST_CASE("tls: a file that is missing, damaged or not one's own is named at the start") {
  const job_certificates job, other;
  const auto good = job.files("worker");
  CHECK(loading(good).empty());
  auto files = good;
  files.authority = job.path() / "nowhere.pem";
  CHECK(loading(files)
        == "cannot read " + files.authority.string() + ": No such file or directory");
  files = good;
  files.key = job.path();
  CHECK(contains(loading(files), "cannot read " + job.path().string() + ": it is a directory"));
  files = good;
  job.write("empty.pem", "");
  files.certificate = job.path() / "empty.pem";
  CHECK(contains(loading(files), "empty.pem: it is empty"));
  job.write("noise.pem", "no certificate at all\n");
  files.certificate = job.path() / "noise.pem";
  CHECK(contains(loading(files), "noise.pem holds no certificate: "));
  files = good;
  files.authority = job.path() / "worker.key";
  CHECK(contains(loading(files), "worker.key holds no certificate: "));
  files = good;
  files.key = job.path() / "worker.pem";
  CHECK(contains(loading(files), "worker.pem holds no private key without a passphrase: "));
  files = good;
  files.key = job.path() / "server.key";
  CHECK(loading(files) == files.key.string() + " is not the key of " + files.certificate.string());
  files = good;
  files.authority = other.path() / "ca.pem";
  CHECK(loading(files) == files.certificate.string() + " is of another authority than ca.pem");
  CHECK(loading(job.files("server"))
        == (job.path() / "server.pem").string() + " is a certificate for server, not for worker");
  job.issue("old", {{role::worker}, {}, in_days(-1)});
  CHECK(contains(loading(job.files("old")), "old.pem expired on 20"));
  job.issue("nobody", {{}, {"10.0.0.1"}, in_days(1)});
  CHECK(contains(loading(job.files("nobody")), "nobody.pem is a certificate for no role"));
  CHECK(ERR_peek_error() == 0);
}

TEST_CASE("tls: a key with a passphrase is refused and nobody is asked for it") {
  const job_certificates job;
  job.write("locked.pem", job.authority().issue({{role::worker}, {}, in_days(1)})->certificate);
  const detail::private_key_ptr key{EVP_EC_gen("P-256")};
  const detail::bio_ptr file{BIO_new_file((job.path() / "locked.key").c_str(), "w")};
  char word[] = "word";
  REQUIRE(PEM_write_bio_PKCS8PrivateKey(file.get(), key.get(), EVP_aes_128_cbc(), word, 4, nullptr,
                                        nullptr)
          == 1);
  (void)BIO_flush(file.get());
  CHECK(contains(loading(job.files("locked")), "locked.key holds no private key without a"));
}

TEST_CASE("tls: a certificate may name several roles, and an authority is kept as text") {
  const job_certificates job;
  job.issue("both", {{role::worker, role::server}, {}, in_days(1)});
  CHECK(loading(job.files("both"), role::worker).empty());
  CHECK(loading(job.files("both"), role::server).empty());
  CHECK(contains(loading(job.files("both"), role::coordinator), "for worker or server, not for"));
  const auto again = certificate_authority::from_text(job.authority().text(), "kept.pem");
  REQUIRE(again);
  const auto made = again->issue({{role::worker}, {}, in_days(1)});
  REQUIRE(made);
  job.write("later.pem", made->certificate);
  job.write("later.key", made->key);
  CHECK(loading(job.files("later")).empty());
}

TEST_CASE("tls: a text that is no authority is told what it lacks") {
  const job_certificates job;
  const auto& authority = job.authority();
  const auto made = authority.issue({{role::worker}, {}, in_days(1)});
  REQUIRE(made);
  const auto certificate = authority.certificate(), both = authority.text();
  const auto key = both.substr(0, both.size() - certificate.size());
  const std::pair<std::string, std::string> cases[] = {
    {"", "neither a key nor a certificate"},
    {key, "a key but not its certificate: append the ca.pem that goes with it"},
    {certificate, "a certificate but not its key"},
    {made->key + certificate, "a key and a certificate that do not belong together"},
    {made->key + made->certificate, "a certificate that is not one of an authority"}};
  for (const auto& [text, line] : cases)
    CHECK(certificate_authority::from_text(text, "k").error()
          == failure{errc::malformed, "k holds " + line});
  CHECK(certificate_authority::from_text(key + certificate, "k"));
}

TEST_CASE("tls: an authority knows what it signed") {
  const job_certificates job;
  const certificate_authority other{in_days(2)};
  const auto made = job.authority().issue({{role::worker}, {}, in_days(1)});
  REQUIRE(made);
  CHECK(job.authority().has_signed(made->certificate));
  CHECK_FALSE(other.has_signed(made->certificate));
  CHECK_FALSE(other.has_signed("nonsense"));
}

TEST_CASE("tls: an authority issues nothing that outlives it, and for no host that is none") {
  const job_certificates job;
  const auto& authority = job.authority();
  CHECK(contains(authority.issue({{role::worker}, {}, in_days(3)}).error().text,
                 "the authority itself expires before that, on 20"));
  for (const char* host : {"", "a b", "x,URI:urn:troupe:role:coordinator", "10.0.0.1/8"}) {
    const auto made = authority.issue({{role::worker}, {host}, in_days(1)});
    REQUIRE_FALSE(made);
    CHECK(contains(made.error().text, "is neither a name nor an address of a host"));
  }
}

TEST_CASE("tls: an authority issues what ends when it ends itself, to fractions of a second") {
  const auto end = std::chrono::floor<std::chrono::seconds>(in_days(1)) + 999ms;
  CHECK(certificate_authority{end}.issue({{role::worker}, {}, end}));
}

TEST_CASE("tls: another authority is refused, and both sides say so") {
  const job_certificates job, other;
  auto sockets = tcp_pair();
  tls_end worker{other.context(role::worker), std::move(sockets.first), link_side::connector};
  tls_end server{job.context(role::server), std::move(sockets.second), link_side::acceptor};
  const auto said = meet(worker, server);
  CHECK(
    said.connector
    == failure{errc::untrusted, "showed a certificate that is of another authority than ca.pem"});
  CHECK(said.acceptor
        == failure{errc::untrusted,
                   "does not accept our certificate: it is of another authority than its ca.pem"});
}

TEST_CASE("tls: a certificate for other addresses is refused, and both sides say so") {
  const job_certificates job;
  job.issue("bound", {{role::server}, {"10.0.0.1", "fd00::1", "host-a"}, in_days(1)});
  for (const auto& [address, right] :
       {std::pair{"10.0.0.1", true}, {"fd00::1", true}, {"", true}, {"10.0.0.2", false}}) {
    CAPTURE(address);
    auto sockets = tcp_pair();
    tls_end worker{job.context(role::worker), std::move(sockets.first), link_side::connector,
                   address};
    tls_end server{job.context(role::server, "bound"), std::move(sockets.second),
                   link_side::acceptor};
    if (right) {
      CHECK(drive(worker, server, [&] { return server.established; }));
      continue;
    }
    const auto said = meet(worker, server);
    CHECK(said.connector
          == failure{errc::untrusted,
                     "showed a certificate that is for 10.0.0.1, fd00::1, not for 10.0.0.2"});
    CHECK(said.acceptor == failure{errc::untrusted, "does not accept our certificate"});
  }
}

TEST_CASE(
  "tls: who shows an expired certificate, none, or an older TLS is refused with the reason") {
  const job_certificates job, other;
  job.issue("old", {{role::worker}, {}, in_days(-1)});
  const auto old = job.files("old"), foreign = other.files("worker"), good = job.files("worker");
  struct unknown_member {
    const tls_files* shown;
    int version;
    std::string here;  ///< Beginning of our error.
    std::string there; ///< Part of the peer's error.
    errc code;
  };
  const unknown_member unknown_members[] = {
    {&old, TLS1_3_VERSION, "showed a certificate that expired on 20", "certificate expired",
     errc::untrusted},
    {nullptr, TLS1_3_VERSION, "showed no certificate", "certificate required", errc::untrusted},
    {&foreign, TLS1_3_VERSION, "showed a certificate that is of another authority than ca.pem",
     "unknown ca", errc::untrusted},
    {&good, TLS1_2_VERSION, "does not speak TLS 1.3", "protocol", errc::malformed}};
  for (const auto& each : unknown_members) {
    CAPTURE(each.here);
    for (const auto side : {link_side::connector, link_side::acceptor}) {
      if (side == link_side::acceptor && each.shown == nullptr)
        continue; // Such an acceptor has no cipher.
      CAPTURE((side == link_side::connector));
      const auto opposite =
        side == link_side::connector ? link_side::acceptor : link_side::connector;
      auto sockets = tcp_pair();
      bare_tls_peer peer{std::move(sockets.first), side, job.path() / "ca.pem", each.shown,
                         each.version};
      tls_end own{job.context(role::server), std::move(sockets.second), opposite};
      const bool settled = drive(peer, own, [&] {
        if (own.over())
          own.stream.finish_writing();
        return own.over() && !peer.why.empty();
      });
      CAPTURE(own.why());
      CAPTURE(peer.why);
      REQUIRE(settled);
      CHECK(own.why().rfind(each.here, 0) == 0);
      CHECK(own.reason().code == each.code);
      CHECK(contains(peer.why, each.there));
      CHECK(ERR_peek_error() == 0);
    }
  }
}

TEST_CASE("tls: a certificate says where it is good before anybody connects") {
  const job_certificates job;
  job.issue("bound", {{role::server}, {"10.0.0.1", "host-a"}, in_days(1)});
  const auto bound = job.context(role::server, "bound");
  CHECK(bound->check_address("10.0.0.1"));
  CHECK(bound->check_address("10.0.0.2").error().text
        == (job.path() / "bound.pem").string() + " is for 10.0.0.1, not for 10.0.0.2");
  CHECK(job.context(role::server)->check_address("10.0.0.2"));
}

TEST_CASE("tls: who speaks plain text, noise or half of something is turned away") {
  const job_certificates job;
  std::minstd_rand random{3};
  for (const auto side : {link_side::connector, link_side::acceptor}) {
    for (int i = 0; i < 300; ++i) {
      auto [socket, bare] = socket_pair();
      tls_end own{job.context(role::server), std::move(socket), side};
      std::string said = i == 0   ? "GET / HTTP/1.1\r\n\r\n"
                         : i == 1 ? std::string("\1\0\0\0\10\0\0\0\0\0\0\0\0\0\0\0", 16)
                                  : std::string(16 + random() % 3000, '\0');
      if (i > 1)
        for (char& each : said)
          each = static_cast<char>(random());
      if (i > 1 && i % 3 == 0) // It looks like a handshake record.
        said.replace(0, 6, {22, 3, 3, 0, 100, static_cast<char>(i % 2 + 1)});
      write_text(*bare, said);
      if (i % 2 == 0)
        bare->finish_writing();
      const bool settled = drive(own, own, [&] { return own.over() || i % 2 == 1; });
      if (i % 2 == 0) {
        CHECK(settled);
        CHECK(own.last.how == transfer::status::failed);
      }
      CHECK(own.got.empty());
      CHECK_FALSE(own.established);
      if (i < 2)
        CHECK(own.reason()
              == failure{errc::malformed, "does not speak TLS 1.3: is it started with --tls DIR?"});
    }
  }
}

} // namespace tls_trust_test
