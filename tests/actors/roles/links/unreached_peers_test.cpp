#include "actors/roles/links/unreached_peers.hpp"

#include "doctest/doctest.h"

namespace unreached_peers_test {

using namespace troupe;
using namespace std::chrono_literals;

namespace {

using notices = std::vector<detail::reach_notice>;

const failure refused{errc::peer_lost, "1.2.3.4:5 cannot be reached: Connection refused"};
const std::string told = "waits for server 3: " + refused.text;

struct fixture {
  notices fail(const failure& why = refused) {
    peers.connecting(link_id{++links}, "1.2.3.4:5", "server 3", now);
    return peers.lost(link_id{links}, why, now);
  }
  notices open() {
    peers.connecting(link_id{++links}, "1.2.3.4:5", "server 3", now);
    return peers.opened(link_id{links});
  }

  detail::unreached_peers peers{3s};
  detail::unreached_peers::clock::time_point now{};
  std::uint64_t links = 0;
};

} // namespace

TEST_CASE("who is not reached for some seconds is told once") {
  fixture f;
  for (; f.now < decltype(f.now){3s}; f.now += 100ms)
    CHECK(f.fail().empty());
  CHECK(f.fail() == notices{{"1.2.3.4:5", told}});
  CHECK(f.fail().empty());
  const failure other{errc::peer_lost, "1.2.3.4:5 sent no hello within 3 s"};
  CHECK(f.fail(other) == notices{{"1.2.3.4:5", "waits for server 3: " + other.text}});
}

TEST_CASE("who is reached is not waited for any more") {
  fixture f;
  f.fail();
  f.now += 2s;
  CHECK(f.open().empty()); // No notice was given before.
  f.now += 2s;
  CHECK(f.fail().empty()); // The time is counted anew.
  f.now += 3s;
  CHECK(f.fail() == notices{{"1.2.3.4:5", told}});
  CHECK(f.open() == notices{{"1.2.3.4:5", ""}});
  CHECK(f.open().empty());
}

TEST_CASE("the loss of an open link is no failure to connect") {
  fixture f;
  f.open();
  f.now += 60s;
  CHECK(f.peers.lost(link_id{f.links}, refused, f.now).empty());
}

TEST_CASE("an address that nobody tries any more is forgotten") {
  fixture f;
  f.fail();
  f.now += 3s;
  CHECK(f.fail().size() == 1);
  f.now += 30s;
  f.peers.connecting(link_id{100}, "9.9.9.9:9", "server 4", f.now);
  CHECK(f.peers.lost(link_id{100}, refused, f.now) == notices{{"1.2.3.4:5", ""}});
}

} // namespace unreached_peers_test
