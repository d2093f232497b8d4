#include "actors/graph/processes/host_processes.hpp"
#include "tests/storage/temporary_directory.hpp"

#include "doctest/doctest.h"

#include <fcntl.h>
#include <unistd.h>

namespace host_processes_test {

using namespace troupe;
using namespace std::chrono_literals;

TEST_CASE("a_host_runs_all_members_or_those_that_it_is_told_to") {
  run_options options;
  options.servers.count = 1;
  options.workers.count = 2;
  CHECK(processes_here(options)
        == std::vector<process_name>{{role::server, 0}, {role::worker, 0}, {role::worker, 1}});
  options.here = {{role::worker, 1}};
  CHECK(processes_here(options) == options.here);
}

TEST_CASE("standbys_are_started_beside_the_coordinator_and_nobody_waits_for_their_end") {
  const storage::temporary_directory folder;
  run_options options;
  options.servers.count = options.workers.count = 1;
  options.run_directory = folder.path();
  options.standbys = 2;
  const int listener = open("/dev/null", O_RDONLY | O_CLOEXEC);
  host_processes here{options, {"this test program", "--no-run"}};
  REQUIRE(here.start(listener, 0s));
  CHECK(here.running() == 3);
  for (const auto* name : {"coordinator", "coordinator-1", "coordinator-2"})
    CHECK(std::filesystem::exists(folder.path() / "logs" / (name + std::string{".log"})));
  CHECK_FALSE(std::filesystem::exists(folder.path() / "logs" / "coordinator-3.log"));
  here.kill_all();
  CHECK(here.running() == 0);
  close(listener);
}

TEST_CASE("servers_that_are_added_and_that_nobody_runs_are_started_on_the_main_host_only") {
  const storage::temporary_directory folder;
  run_options options;
  options.servers.count = 2;
  options.here = {{role::server, 0}};
  options.run_directory = folder.path();
  const auto absent = incarnation_id{}, present = incarnation_id{5};
  for (const bool is_main : {false, true}) {
    CAPTURE(is_main);
    host_processes here{options, {"this test program", "--no-run"}};
    REQUIRE(here.start(-1, 0s));
    job_status job;
    const auto have = [&](std::uint32_t index, incarnation_id incarnation) {
      job.servers.push_back({index});
      member_status one;
      one.member = {role::server, index, incarnation};
      job.members.push_back(one);
    };
    have(0, absent);  // Server 0 is starting here.
    have(1, absent);  // Server 1 is another host's.
    have(2, present); // Server 2 is too; no option asked for it.
    have(3, absent);
    CHECK(here.follow(job, is_main, 0s).empty());
    CHECK(here.running() == (is_main ? 2 : 1));
    job.members[2].member.incarnation = absent; // Server 2 is lost; its host restarts it.
    CHECK(here.follow(job, is_main, 0s).empty());
    CHECK(here.running() == (is_main ? 2 : 1));
    job.draining = {{0}, {1}, {2}, {3}};
    CHECK(here.follow(job, is_main, 0s).empty());
    job.draining.clear();
    job.servers = {{0}, {2}, {3}};
    CHECK(here.follow(job, is_main, 0s).empty()); // Server 2 left its host and starts here.
    CHECK(here.running() == (is_main ? 3 : 1));
    here.kill_all();
  }
}

TEST_CASE("planned_kills_are_carried_out_once_and_when_it_is_time") {
  run_options options;
  options.kills = {{{role::worker, 1}, 3000ms}, {{role::server, 0}, 1000ms}};
  host_processes here{options, {}};
  CHECK(here.kill_planned(10s, 10s).empty());
  CHECK(here.kill_planned(10s, 11s)
        == std::vector<job_event>{{event_kind::kill_injected, {{"member", "server 0"}}},
                                  note_of("server 0 does not run here")});
  CHECK(here.kill_planned(10s, 12s).empty());
  CHECK(here.kill_planned(10s, 13s).size() == 2);
  CHECK(here.kill_planned(10s, 99s).empty());
}

} // namespace host_processes_test
