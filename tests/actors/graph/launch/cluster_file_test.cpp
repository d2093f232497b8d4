#include "actors/graph/launch/cluster_file.hpp"

#include "tests/actors/tiny_training.hpp"
#include "tests/storage/temporary_directory.hpp"

#include "doctest/doctest.h"

namespace cluster_file_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

TEST_CASE("fields_that_a_program_sets_reach_processes_that_make_no_graph") {
  run_options options;
  options.checkpoint_directory = "/tmp/c";
  graph g;
  auto model = g.add("model", servers{.tables = {table_of("w", 4)},
                                      .count = 2,
                                      .replicas = 2,
                                      .apply_batch = 7,
                                      .verify_replicas = 8,
                                      .checkpoints = {.interval = 5ms, .keep = 2},
                                      .scrub_interval = 9ms});
  auto some = options.workers_of(10, trainers(constant_gradient(1)));
  some.stragglers = straggler_measure::demoted;
  some.straggler_time_scale = 3;
  g.add("learners", some).into(model);
  const auto made = lower("tiny", g, options);
  REQUIRE(made);
  const storage::temporary_directory folder;
  for (const bool compared : {true, false}) {
    auto written = cluster_file_of(*made);
    if (!compared)
      written.for_coordinator.workers.stragglers.reset();
    REQUIRE(write_cluster_file(folder.path(), written));
    const auto read = read_cluster_file(folder.path());
    REQUIRE(read);
    CHECK(read->job == made->job);
    const auto& server = read->for_servers.servers;
    CHECK(server.apply_batch == 7);
    CHECK(server.verify_replicas == 8);
    CHECK(server.checkpoints.keep == 2);
    const auto& coordinator = read->for_coordinator;
    CHECK(coordinator.servers.checkpoints == checkpoint_options{5ms, 0, 2});
    CHECK(coordinator.servers.scrub_interval == 9ms);
    CHECK(coordinator.workers.stragglers
          == (compared ? std::optional{straggler_measure::demoted} : std::nullopt));
    CHECK(coordinator.workers.straggler_time_scale == 3);
    CHECK(coordinator.servers.apply_batch == 1); // Only servers need it.
  }
}

} // namespace cluster_file_test
