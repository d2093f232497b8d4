#include "actors/protocol/coordinator/desired_states.hpp"

#include "tests/actors/coordinator_fixture.hpp"

namespace troupe::desired_states_test {
namespace {

TEST_CASE("an observer hears of counters with its next status, of the phase at once") {
  desired_state before;
  before.body = job_status{};
  auto after = before;
  std::get<job_status>(after.body).batches_done = 5;
  CHECK_FALSE(must_be_sent(after, before));
  std::get<job_status>(after.body).phase = job_phase::training;
  CHECK(must_be_sent(after, before));
}

TEST_CASE("a worker hears of every change at once") {
  desired_state before;
  before.body = desired_worker{};
  auto after = before;
  CHECK_FALSE(must_be_sent(after, before));
  std::get<desired_worker>(after.body).start_clock = 5;
  CHECK(must_be_sent(after, before));
}

TEST_CASE("every member hears of a change of those that it may connect to at once") {
  for (const auto& row : role_rows) {
    if (row.members_max == 0)
      continue;
    desired_state before;
    before.body = body_for(row.role);
    auto after = before;
    after.listeners = {{{role::server, 0, {1}}, "there:1"}};
    CHECK(must_be_sent(after, before));
  }
}

/// Returns members of all roles that report, each with an address.
membership members_with_addresses() {
  membership all;
  for (const auto& row : role_rows) {
    status_message what;
    what.from = {row.role, 4, {10}};
    what.sequence = 1;
    what.address = std::string{row.name} + ":1";
    if (row.members_max > 0)
      all.hear(what, 10s);
  }
  return all;
}

TEST_CASE("members that listen are listed for the roles that theirs admits, and no others") {
  const auto members = members_with_addresses();
  const member_address server{{role::server, 4, {10}}, "server:1"};
  const member_address worker{{role::worker, 4, {10}}, "worker:1"};
  const member_address actor{{role::actor, 4, {10}}, "actor:1"};
  CHECK(listeners_for(role::observer, members) == std::vector{server});
  CHECK(listeners_for(role::server, members) == std::vector{server, worker});
  for (const auto whom : {role::worker, role::actor})
    CHECK(listeners_for(whom, members) == std::vector{server, worker, actor});
  CHECK(listeners_for(role::coordinator, members).empty());
  auto rows = role_rows;
  auto& changed = rows[static_cast<std::size_t>(role::worker)];
  changed.listens = listening::always;
  changed.admits = role_set_of({role::worker, role::coordinator});
  CHECK(listeners_for(role::worker, members, rows) == std::vector{server, worker, actor});
  CHECK(listeners_for(role::coordinator, members, rows) == std::vector{worker});
  CHECK(listeners_for(role::actor, members, rows) == std::vector{server, actor});
  changed.listens = listening::never; // It admits them, and has no address to tell.
  CHECK(listeners_for(role::worker, members, rows) == std::vector{server, actor});
}

TEST_CASE("a member without an address is not listed, though its role may be reached") {
  membership members;
  for (const auto& row : role_rows) {
    status_message what;
    what.from = {row.role, 4, {10}};
    what.sequence = 1;
    members.hear(what, 10s);
  }
  for (const auto& row : role_rows)
    CHECK(listeners_for(row.role, members).empty());
}

TEST_CASE("a job has the servers that are stored, else those that it began with") {
  const auto job = job_of_mode(consistency_mode::asp, 2);
  storage::coordinator_state stored;
  CHECK(servers_of(job, stored) == std::set<server_id>{{0}, {1}});
  stored.servers = {{1}, {4}};
  CHECK(servers_of(job, stored) == std::set<server_id>{{1}, {4}});
}

} // namespace
} // namespace troupe::desired_states_test
