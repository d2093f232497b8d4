#include "actors/graph/report/missing_members.hpp"

#include "doctest/doctest.h"

namespace missing_members_test {

using namespace troupe;
using namespace std::chrono_literals;

namespace {

struct fixture {
  explicit fixture(std::size_t workers = 2) {
    for (std::size_t i = 0; i < workers; ++i)
      set("worker-" + std::to_string(i), member_state::active);
  }

  void set(const std::string& name, member_state state) {
    for (auto& each : job.processes)
      if (each.name == name)
        return void(each.state = state);
    auto& made = job.processes.emplace_back();
    made.name = name;
    made.state = state;
  }

  missing_members watch;
  progress_snapshot job;
};

} // namespace

TEST_CASE("who is missing for some seconds is told once") {
  fixture f;
  f.set("server-3", member_state::absent);
  f.set("worker-1", member_state::absent);
  CHECK_FALSE(f.watch.look(f.job, 0s));
  CHECK_FALSE(f.watch.look(f.job, 3999ms));
  CHECK(f.watch.look(f.job, 4s) == "the job waits for worker 1, server 3");
  CHECK_FALSE(f.watch.look(f.job, 60s));
}

TEST_CASE("who loads is told of where nobody is away") {
  fixture f;
  f.set("server-3", member_state::absent);
  f.set("worker-1", member_state::joining);
  f.watch.look(f.job, 0s);
  CHECK(f.watch.look(f.job, 4s) == "the job waits for server 3");
  f.set("server-3", member_state::active);
  CHECK_FALSE(f.watch.look(f.job, 5s));
  CHECK(f.watch.look(f.job, 9s) == "the job waits for worker 1");
}

TEST_CASE("a list that changes is told again but not all the time") {
  fixture f;
  f.set("worker-0", member_state::absent);
  f.set("worker-1", member_state::absent);
  f.watch.look(f.job, 0s);
  CHECK(f.watch.look(f.job, 4s) == "the job waits for worker 0, worker 1");
  f.set("worker-0", member_state::active);
  CHECK_FALSE(f.watch.look(f.job, 5s));
  CHECK(f.watch.look(f.job, 9s) == "the job waits for worker 1");
}

TEST_CASE("who comes back in time is not told of") {
  fixture f;
  f.set("worker-0", member_state::absent);
  f.watch.look(f.job, 0s);
  f.set("worker-0", member_state::active);
  f.watch.look(f.job, 3s);
  f.set("worker-0", member_state::restoring);
  CHECK_FALSE(f.watch.look(f.job, 4s));
  CHECK_FALSE(f.watch.look(f.job, 7s));
  CHECK(f.watch.look(f.job, 8s) == "the job waits for worker 0");
}

TEST_CASE("of many that are missing eight are named") {
  fixture f{0};
  for (int i = 0; i < 12; ++i)
    f.set("worker-" + std::to_string(i), member_state::absent);
  f.watch.look(f.job, 0s);
  CHECK(
    f.watch.look(f.job, 4s)
    == "the job waits for worker 0, worker 1, worker 2, worker 3, worker 4, worker 5, worker 6, "
       "worker 7 (and 4 more)");
}

TEST_CASE("before it was heard of the coordinator is missing") {
  fixture f{0};
  f.watch.look(f.job, 0s);
  CHECK(f.watch.look(f.job, 4s) == "the job waits for the coordinator");
}

TEST_CASE("a job that trains is without them and one that has ended wants nobody") {
  fixture f;
  f.job.phase = job_phase::training;
  f.job.processes[0].dead = true;
  f.watch.look(f.job, 0s);
  CHECK(f.watch.look(f.job, 4s) == "the job is still without worker 0");
  fixture lost;
  lost.job.phase = job_phase::training;
  lost.set("coordinator-0", member_state::absent);
  lost.job.processes.back().is_coordinator = true;
  lost.watch.look(lost.job, 0s);
  CHECK(lost.watch.look(lost.job, 4s) == "the job is still without the coordinator");
  fixture over;
  over.job.phase = job_phase::finished;
  over.job.processes[0].dead = true;
  over.watch.look(over.job, 0s);
  CHECK_FALSE(over.watch.look(over.job, 4s));
}

} // namespace missing_members_test
