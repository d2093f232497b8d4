#include "actors/graph/worker_groups.hpp"

#include "doctest/doctest.h"

namespace troupe::worker_groups_test {

namespace {

TEST_CASE("each worker has a process of its own where nothing else is asked for") {
  run_options options;
  options.servers.count = 1;
  options.workers.count = 2;
  options.workers.backups = 1;
  CHECK(processes_here(options)
        == std::vector<process_name>{
          {role::server, 0}, {role::worker, 0}, {role::worker, 1}, {role::worker, 2}});
  const member_id one{role::worker, 1, {70}};
  CHECK(members_of(options, one) == std::vector{one});
}

TEST_CASE("each actor of a program has a process of its own") {
  run_options options;
  options.servers.count = 1;
  options.workers.count = 2;
  options.workers.per_process = 2;
  options.actors = 2;
  CHECK(processes_here(options)
        == std::vector<process_name>{
          {role::server, 0}, {role::worker, 0}, {role::actor, 0}, {role::actor, 1}});
  const member_id one{role::actor, 1, {70}};
  CHECK(members_of(options, one) == std::vector{one});
}

TEST_CASE("workers share processes in the order of their indices") {
  run_options options;
  options.servers.count = 1;
  options.workers.count = 7;
  options.workers.per_process = 3;
  CHECK(processes_here(options)
        == std::vector<process_name>{
          {role::server, 0}, {role::worker, 0}, {role::worker, 3}, {role::worker, 6}});
  CHECK(members_of(options, {role::worker, 3, {70}})
        == std::vector<member_id>{
          {role::worker, 3, {70}}, {role::worker, 4, {71}}, {role::worker, 5, {72}}});
  CHECK(process_of_worker(options, 5) == process_name{role::worker, 3});
  CHECK(process_of_worker(options, 6) == process_name{role::worker, 6});
}

TEST_CASE("a host runs those workers of a group that it was told to run") {
  run_options options;
  options.workers.per_process = 4;
  options.here = {{role::worker, 6}, {role::server, 1}, {role::worker, 5}, {role::worker, 9}};
  CHECK(processes_here(options)
        == std::vector<process_name>{{role::server, 1}, {role::worker, 5}, {role::worker, 9}});
  CHECK(members_of(options, {role::worker, 5, {70}})
        == std::vector<member_id>{{role::worker, 5, {70}}, {role::worker, 6, {71}}});
}

} // namespace

} // namespace troupe::worker_groups_test
