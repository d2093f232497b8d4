#include "actors/member_port.hpp"

#include "tests/actors/actor_fixture.hpp"

#include "doctest/doctest.h"

namespace member_port_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

/// A member that consists of its port only.
struct fixture : actor_fixture {
  fixture() : coordinator(*this) { open(); }

  void open(const std::string& address = {}) {
    handle = owned(system.spawn([this, address](troupe::member_handle::pointer self) {
      port.open(self, {role::worker, 3, {77}}, 1234, coordinator.connector(), address);
      return troupe::member_handle::behavior_type{[](const desired_state&) {}};
    }));
  }

  bool takes(std::uint64_t term, std::uint64_t sequence) {
    return port.take<desired_worker>({{}, term, sequence, false, {}, desired_worker{}}) != nullptr;
  }

  void report() {
    port.send(worker_status{});
    sched.run();
  }

  fake_coordinator coordinator;
  member_port port;
  troupe::member_handle handle;
};

} // namespace

TEST_CASE("a report says who sent it, for which job, and has the next number") {
  fixture f;
  f.report();
  f.report();
  REQUIRE(f.coordinator.reports().size() == 2);
  const auto& last = f.coordinator.reports().back();
  CHECK(last.from == member_id{role::worker, 3, {77}});
  CHECK(last.job == 1234);
  CHECK(last.sequence == 2);
  CHECK(last.rss_bytes_max > 0);
}

TEST_CASE("a report has the address of a member that listens") {
  fixture f;
  f.report();
  CHECK(f.coordinator.reports().back().address.empty());
  f.port = {};
  f.open("here:1");
  f.report();
  f.report();
  CHECK(f.coordinator.reports().back().address == "here:1");
}

TEST_CASE("a report is due an interval after the last one") {
  fixture f;
  f.report();
  f.advance(report_interval - 10ms);
  CHECK_FALSE(f.port.due());
  f.advance(10ms);
  CHECK(f.port.due());
  f.report();
  CHECK_FALSE(f.port.due());
}

TEST_CASE(
  "desired states that are repeated, overtaken, of an older term or not for it are not taken") {
  fixture f;
  CHECK(f.takes(1, 5));
  CHECK_FALSE(f.takes(1, 5));
  CHECK_FALSE(f.takes(1, 4));
  CHECK(f.port.take<desired_worker>({{}, 9, 1, false, {}, desired_server{}}) == nullptr);
  CHECK(f.takes(2, 1));
  CHECK_FALSE(f.takes(1, 6));
}

} // namespace member_port_test
