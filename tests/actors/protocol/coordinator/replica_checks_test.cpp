#include "actors/protocol/coordinator/replica_checks.hpp"

#include "doctest/doctest.h"

#include <utility>
#include <vector>

namespace troupe::replica_checks_test {

namespace {

member_id server(std::uint32_t index) { return {role::server, index, {1}}; }

replica_status status_of(std::uint32_t chain, std::vector<value_checksum> checksums,
                         std::uint64_t generation = 1) {
  replica_status made;
  made.shard = {chain};
  made.status.generation = {generation};
  made.checksums = std::move(checksums);
  return made;
}

} // namespace

TEST_CASE("replicas with equal values at equal versions are fine") {
  replica_checks checks;
  CHECK(checks.hear(server(0), status_of(0, {{10, 1}, {20, 2}})));
  CHECK(checks.hear(server(1), status_of(0, {{20, 2}, {30, 3}})));
  CHECK(checks.hear(server(1), status_of(1, {{10, 7}, {20, 8}}))); // Another shard.
  CHECK(checks.hear(server(0), status_of(0, {{30, 3}})));
  CHECK(checks.hear(server(0), status_of(0, {})));
}

TEST_CASE("a difference names shard, version and both replicas, in whatever order they report") {
  for (const std::uint32_t first : {0u, 2u}) {
    replica_checks checks;
    const auto second = 2 - first;
    CHECK(checks.hear(server(first), status_of(3, {{10, 1}, {20, 0x3f2a77d1}, {30, 4}})));
    CHECK(checks.hear(server(second), status_of(3, {{10, 1}, {20, 0x9b11c2e0}})).error().text
          == "shard 3 has other values on server " + std::to_string(second) + " than on server "
               + std::to_string(first)
               + " after version 20 (9b11c2e0, 3f2a77d1): a server function reads more than its "
                 "arguments, or memory is faulty");
  }
}

TEST_CASE("another generation of a shard has other values") {
  replica_checks checks;
  CHECK(checks.hear(server(0), status_of(0, {{10, 1}}, 1)));
  CHECK(checks.hear(server(0), status_of(0, {{10, 2}}, 2)));
  CHECK(checks.hear(server(1), status_of(0, {{10, 1}}, 1))); // It lags behind.
  CHECK(checks.hear(server(1), status_of(0, {{10, 2}}, 2)));
  CHECK_FALSE(checks.hear(server(1), status_of(0, {{10, 1}}, 2)));
}

} // namespace troupe::replica_checks_test
