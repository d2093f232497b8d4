#include "actors/protocol/server/replica_requests.hpp"

#include "tests/actors/host_effect_lines.hpp"

#include "doctest/doctest.h"

#include <optional>
#include <string>
#include <vector>

namespace troupe::replica_requests_test {

namespace {

using lines = std::vector<std::string>;

struct fixture {
  lines acknowledged(std::uint64_t token) {
    return test::lines_of([&](host_effects& effects) {
      requests.acknowledged({{token}, {}}, effects);
    });
  }
  lines answered(std::uint64_t token, std::uint64_t version) {
    return test::lines_of([&](host_effects& effects) {
      requests.answered({{token}, version, {}}, effects);
    });
  }
  lines refused(std::uint64_t token, errc code) {
    return test::lines_of([&](host_effects& effects) {
      requests.refused({{token}, {code, "no"}}, effects);
    });
  }

  replica_requests requests;
};

} // namespace

TEST_CASE("a push alone ends when it is acknowledged") {
  fixture f;
  f.requests.add({1}, std::nullopt);
  CHECK(f.acknowledged(1) == lines{"acknowledge 1", "reply 1 pushed"});
  CHECK_FALSE(f.requests.any_due());
}

TEST_CASE("a pull that came with a push is due when the push is acknowledged, and answers both") {
  fixture f;
  f.requests.add({1}, pull_request{});
  CHECK_FALSE(f.requests.any_due());
  CHECK(f.acknowledged(1) == lines{"acknowledge 1"});
  REQUIRE(f.requests.any_due());
  CHECK(f.requests.take_due() == request_token{1});
  CHECK_FALSE(f.requests.any_due());
  CHECK(f.answered(1, 7) == lines{"reply 1 pushed read 7"});
}

TEST_CASE("a pull alone is answered without a push") {
  fixture f;
  f.requests.add({1}, pull_request{});
  CHECK(f.answered(1, 7) == lines{"reply 1 read 7"});
}

TEST_CASE("a refused request ends with its receipt where its pull may be tried again") {
  fixture f;
  for (const std::uint64_t token : {1, 2, 3})
    f.requests.add({token}, pull_request{});
  f.acknowledged(1);
  f.acknowledged(2);
  CHECK(f.refused(1, errc::not_ready) == lines{"reply 1 pushed"});
  CHECK(f.refused(2, errc::invalid_argument) == lines{"refuse 2 invalid_argument"});
  CHECK(f.refused(3, errc::not_ready) == lines{"refuse 3 not_ready"});
}

TEST_CASE("all open requests are refused in their order, and none is due any more") {
  fixture f;
  for (const std::uint64_t token : {1, 2, 3})
    f.requests.add({token}, pull_request{});
  f.acknowledged(3);
  f.answered(2, 7);
  const auto told = test::lines_of([&](host_effects& effects) {
    f.requests.refuse_all({errc::rolled_back, "begins again"}, effects);
  });
  CHECK(told == lines{"refuse 1 rolled_back", "refuse 3 rolled_back"});
  CHECK_FALSE(f.requests.any_due());
}

} // namespace troupe::replica_requests_test
