// Tests when the coordinator has checkpoints written, committed or given up.
#include "tests/actors/coordinator_fixture.hpp"

namespace troupe::coordinator_checkpoint_test {
namespace {

using namespace std::chrono_literals;

// -- checkpoints --------------------------------------------------------------------------------

TEST_CASE("a checkpoint is committed when all parts are there, with the next after an interval") {
  coordinator_fixture one(job_of_mode(consistency_mode::asp, 2, 2, 1000), {}, {}, 11);
  one.train();
  const auto pass = [&](std::chrono::milliseconds time) {
    for (auto step = 0ms; step < time; step += 100ms) {
      one.tick(100ms);
      one.part(0, 100, 20);
      one.worker(0, 200);
      one.worker(1, 201);
      one.server(1, 101, 20);
    }
  };
  pass(1900ms);
  CHECK(one.desired_of_server(0, 100).checkpoint == 0);
  pass(200ms);
  CHECK(one.desired_of_server(0, 100).checkpoint == 12);
  CHECK(one.desired_of_server(1, 101).checkpoint == 12);
  one.part(0, 100, 20);
  CHECK(one.commits.empty());
  one.part(1, 101, 20);
  REQUIRE(one.commits.size() == 1);
  CHECK(one.commits[0].checkpoint == 12);
  CHECK(one.commits[0].parts.size() == 2);
  CHECK(one.commits[0].cursor.value > 0);
  one.committed(12);
  CHECK(one.told(event_kind::checkpoint_committed, {{"checkpoint", "12"}}));
}

TEST_CASE("a failed part ends the checkpoint, a lost server too, and the next has a new number") {
  coordinator_options how;
  how.checkpointing.interval = 100ms;
  coordinator_fixture one(job_of_mode(consistency_mode::asp, 2, 2, 1000), how);
  one.train();
  one.server(0, 100, 5);
  one.server(1, 101, 5);
  one.tick(100ms);
  REQUIRE(one.desired_of_server(0, 100).checkpoint == 1);
  one.part(0, 100, 5, 1);
  CHECK(
    one.told(event_kind::checkpoint_failed, {{"checkpoint", "1"}, {"reason", "the disk is full"}}));
  CHECK(one.desired_of_server(0, 100).checkpoint == 0);
  one.server(0, 100, 6);
  one.server(1, 101, 6);
  one.tick(100ms);
  REQUIRE(one.desired_of_server(0, 100).checkpoint == 2);
  one.part(0, 100, 6);
  one.death(role::server, 0, 100);
  CHECK(one.desired_of_server(1, 101).checkpoint == 0);
  CHECK(one.commits.empty());
}

TEST_CASE("a checkpoint that nobody finishes is given up after a minute") {
  coordinator_options how;
  how.checkpointing.interval = 100ms;
  coordinator_fixture one(job_of_mode(consistency_mode::asp, 2, 2, 1000), how);
  one.train();
  for (int i = 0; i < 620; ++i) {
    one.tick(100ms);
    one.server(0, 100, 5);
    one.server(1, 101, 5);
  }
  CHECK(
    one.told(event_kind::checkpoint_failed, {{"checkpoint", "1"}, {"reason", "it took too long"}}));
}

TEST_CASE("bsp checkpoints name a clock that no server has passed") {
  coordinator_options how;
  how.checkpointing.interval = 100ms;
  coordinator_fixture one(job_of_mode(consistency_mode::bsp, 2, 2, 1000), how);
  one.train();
  one.server(0, 100, 20); // 10 clocks of 2 slots.
  one.server(1, 101, 18);
  one.tick(100ms);
  CHECK(one.desired_of_server(0, 100).checkpoint == 1);
  CHECK(one.desired_of_server(0, 100).checkpoint_clock == 12);
}

TEST_CASE("damage that was found is told") {
  coordinator_fixture one(job_of_mode(consistency_mode::asp, 2, 2, 1000));
  one.train();
  coordinator_effects effects;
  one.boss->scrub_failed({errc::damaged, "checkpoint 3 in d is damaged: torn"}, effects);
  one.boss->scrub_failed({errc::io_failed, "checkpoint 4 in d is unreadable: EIO"}, effects);
  one.keep(effects);
  CHECK(
    one.told(event_kind::checkpoint_damaged, {{"reason", "checkpoint 3 in d is damaged: torn"}}));
  CHECK(one.told(event_kind::checkpoint_unreadable,
                 {{"reason", "checkpoint 4 in d is unreadable: EIO"}}));
}

} // namespace
} // namespace troupe::coordinator_checkpoint_test
