#include "actors/protocol/session/hung_processes.hpp"

#include "doctest/doctest.h"

namespace hung_processes_test {

using namespace troupe;
using namespace std::chrono_literals;

namespace {

const process_name worker{role::worker, 1};
const std::map<process_name, incarnation_id> running{{worker, {7}}};

std::vector<member_status> members(std::uint64_t incarnation) {
  member_status status;
  status.member = {role::worker, 1, {incarnation}};
  return {status};
}

} // namespace

TEST_CASE("a process that was given up and still runs after 5 s hangs") {
  hung_processes watch;
  CHECK(watch.find(running, members(7), 0s).empty());
  CHECK(watch.find(running, members(0), 10s).empty());
  CHECK(watch.find(running, members(0), 15s).empty());
  CHECK(watch.find(running, members(0), 15001ms) == std::vector{worker});
  CHECK(watch.find(running, members(0), 15100ms).empty()); // Told once; the kill is under way.
}

TEST_CASE("who comes back does not hang") {
  hung_processes watch;
  watch.find(running, members(7), 0s);
  watch.find(running, members(0), 10s);
  CHECK(watch.find(running, members(7), 14s).empty());
  CHECK(watch.find(running, members(0), 16s).empty());
  CHECK(watch.find(running, members(0), 21s).empty());
}

TEST_CASE("a process that is not a member yet does not hang") {
  hung_processes watch;
  CHECK(watch.find(running, members(3), 0s).empty());
  CHECK(watch.find(running, members(3), 60s).empty());
}

TEST_CASE("a successor begins anew") {
  hung_processes watch;
  watch.find(running, members(7), 0s);
  watch.find(running, members(0), 1s);
  const std::map<process_name, incarnation_id> successor{{worker, {8}}};
  CHECK(watch.find(successor, members(0), 9s).empty());
  CHECK(watch.find(successor, members(8), 10s).empty());
  CHECK(watch.find(successor, members(0), 11s).empty());
}

} // namespace hung_processes_test
