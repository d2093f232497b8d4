// Tests how a server reports the state that it kept and begins with.
#include "actors/roles/server/server_actor.hpp"
#include "tests/actors/actor_fixture.hpp"
#include "tests/actors/shard_fixture.hpp"
#include "tests/storage/temporary_directory.hpp"

#include "caf/typed_event_based_actor.hpp"
#include "doctest/doctest.h"

namespace kept_server_test {

using namespace troupe;
using namespace troupe::test;

namespace {

/// A chain of one server that is started repeatedly and keeps the state it is told to keep.
struct fixture : actor_fixture {
  fixture() : job(job_of({bsp()})) { job.durability = durability_mode::log; }

  checkpointer files() {
    return owned(system.spawn([this](checkpointer::pointer) -> checkpointer::behavior_type {
      return {
        [this](write_atom, const storage::cut& what) -> caf::result<checkpoint_part> {
          kept = std::make_shared<storage::local_state>(
            storage::local_state{what.base.value(), what.partitions, {}});
          return checkpoint_part{};
        },
        [](read_atom, std::uint64_t, const job_spec&,
           const std::vector<partition_id>&) -> caf::result<std::vector<partition_image>> {
          return to_caf({errc::io_failed, "none"});
        },
        [this](read_atom, shard_id, const job_spec&, const std::vector<partition_id>&)
          -> caf::result<std::shared_ptr<storage::local_state>> { return kept; },
        [](find_atom, const job_spec&,
           const std::vector<std::uint64_t>&) -> caf::result<storage::checkpoint_search_result> {
          return storage::checkpoint_search_result{};
        },
        [](commit_atom, const storage::manifest& what) -> caf::result<std::uint64_t> {
          return what.checkpoint;
        },
        [](scrub_atom) -> caf::result<std::uint64_t> { return 0; },
      };
    }));
  }

  /// Returns the configuration of the server's start `number`; its number and generation are the
  /// same.
  static chain_config alone(std::uint64_t number) {
    return {{number}, {number}, {{role::server, 0, {number}}}, {}};
  }

  /// Starts the server with the chain and returns its report on the chain.
  replica_status start(std::uint64_t number, const chain_metadata& chain) {
    server_options options;
    options.self = {role::server, 0, {number}};
    options.job = fingerprint(job);
    options.directory = home.path();
    options.own_thread = false;
    options.boot_clock = clock();
    fake_coordinator coordinator{*this};
    const auto server = owned(spawn_server(system, options, coordinator.connector(), files()));
    desired_server what;
    what.job = job;
    what.generation = {1};
    what.chains = {{{0}, chain}};
    what.shard_of.assign(job.partitions, shard_id{0});
    coordinator.order(server, what);
    return coordinator.last<server_status>().chains.at(0);
  }

  job_spec job;
  storage::temporary_directory home;
  std::shared_ptr<storage::local_state> kept;
};

} // namespace

TEST_CASE("a_start_after_an_unfinished_beginning_says_what_that_began_with") {
  for (const bool is_wiped : {false, true}) {
    CAPTURE(is_wiped);
    fixture f;
    const auto lost = fixture::alone(1);
    f.start(1, {lost, 0, {}});
    REQUIRE(f.kept);
    if (is_wiped)
      f.kept.reset();
    for (const std::uint64_t number : {2u, 3u}) { // The first start ends before it acts.
      const auto begun = f.start(number, {lost, 0, fixture::alone(number)});
      CHECK(begun.status.complete);
      CHECK(f.kept->base.generation == generation_id{number});
      CHECK(begun.recovered == !is_wiped);
    }
  }
}

TEST_CASE("who_left_the_chain_before_it_was_lost_begins_with_the_checkpoint") {
  fixture f;
  f.start(1, {fixture::alone(1), 0, {}});
  REQUIRE(f.kept);
  REQUIRE(f.kept->base.generation == generation_id{1});
  chain_config lost{{2}, {1}, {{role::server, 1, {1}}}, {}};
  const auto begun = f.start(3, {lost, 7, fixture::alone(3)});
  CHECK(begun.unreadable == 7); // There is no checkpoint to read.
  CHECK_FALSE(begun.recovered);
}

} // namespace kept_server_test
