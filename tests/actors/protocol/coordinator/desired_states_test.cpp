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

TEST_CASE("a job has the servers that are stored, else those that it began with") {
  const auto job = job_of_mode(consistency_mode::asp, 2);
  storage::coordinator_state stored;
  CHECK(servers_of(job, stored) == std::set<server_id>{{0}, {1}});
  stored.servers = {{1}, {4}};
  CHECK(servers_of(job, stored) == std::set<server_id>{{1}, {4}});
}

} // namespace
} // namespace troupe::desired_states_test
