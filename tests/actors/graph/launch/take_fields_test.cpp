#include "actors/graph/launch/take_fields.hpp"

#include "actors/graph/options/fields.hpp"

#include "doctest/doctest.h"

#include <chrono>

namespace take_fields_test {

using namespace troupe;
using namespace std::chrono_literals;

namespace {

run_options of_a_graph() {
  run_options options;
  options.servers.apply_batch = 7;
  options.servers.verify_replicas = 8;
  options.servers.checkpoints = {.interval = 5ms, .keep = 2};
  options.servers.scrub_interval = 9ms;
  options.workers.straggler_time_scale = 4;
  return options;
}

} // namespace

TEST_CASE("a_server_has_the_fields_of_the_graph") {
  server_options how;
  take_fields(carried_to(role::server, of_a_graph()), how);
  CHECK(how.apply_batch == 7);
  CHECK(how.verify_replicas == 8);
}

TEST_CASE("a_coordinator_has_the_fields_of_the_graph") {
  coordinator_setup setup;
  take_fields(carried_to(role::coordinator, of_a_graph()), setup);
  CHECK(setup.options.checkpointing == checkpoint_options{5ms, 0, 2});
  CHECK(setup.scrub_interval == 9ms);
  REQUIRE(setup.options.stragglers);
  CHECK(setup.options.stragglers->round == 250ms);
}

TEST_CASE("measures_against_stragglers_are_those_that_the_way_to_run_can_take") {
  const auto strongest = [](const run_options& options) {
    coordinator_setup setup;
    take_fields(carried_to(role::coordinator, options), setup);
    return setup.options.stragglers->strongest;
  };
  run_options options;
  CHECK(strongest(options) == straggler_measure::evicted);
  options.asked_mode = run_mode::threads;
  CHECK(strongest(options) == straggler_measure::demoted);
  options.sync.mode = consistency_mode::hogwild;
  CHECK(strongest(options) == straggler_measure::warned);
}

} // namespace take_fields_test
