#include "actors/protocol/coordinator/checkpoint_schedule.hpp"

#include "doctest/doctest.h"

namespace troupe::checkpoint_schedule_test {
namespace {

using namespace std::chrono_literals;

job_spec job_of(consistency_mode mode, std::uint64_t batches = 1000) {
  job_spec job;
  job.name = "schedule";
  job.servers = 2;
  job.workers = 4;
  job.batch_samples = 1;
  job.samples = batches;
  table_spec table;
  table.name = "w";
  table.shape = {16};
  table.sync.mode = mode;
  job.tables = {table};
  return job;
}

TEST_CASE("the next one is due an interval after the last one ended, if anything happened") {
  checkpoint_schedule schedule(job_of(consistency_mode::asp), {2000ms, 0}, 11);
  schedule.restart({0, 0}, 1s);
  CHECK_FALSE(schedule.due({5, 0}, 2999ms));
  CHECK_FALSE(schedule.due({0, 0}, 3s));
  CHECK(schedule.due({5, 0}, 3s));
  schedule.begin({5, 0}, 3s, true);
  CHECK(schedule.asked() == 12);
  CHECK(schedule.asked_clock() == 0);
  CHECK_FALSE(schedule.due({9, 0}, 9s)); // A checkpoint is under way.
}

TEST_CASE("it is committed when every server brought its part of this number") {
  checkpoint_schedule schedule(job_of(consistency_mode::asp), {2000ms, 0}, 0);
  schedule.begin({5, 0}, 1s, true);
  CHECK_FALSE(schedule.add({1, {0}, {}, 0}));
  CHECK_FALSE(schedule.add({1, {0}, {}, 0}));
  CHECK_FALSE(schedule.add({7, {1}, {}, 0}));
  CHECK(schedule.add({1, {1}, {}, 0}));
  CHECK(schedule.committing());
  CHECK(schedule.asked() == 0);
  CHECK(schedule.parts().size() == 2);
  schedule.committed(4s);
  CHECK_FALSE(schedule.due({9, 0}, 5999ms));
  CHECK(schedule.due({9, 0}, 6s));
}

TEST_CASE("one that was given up is never completed, and its number not used again") {
  checkpoint_schedule schedule(job_of(consistency_mode::asp), {2000ms, 0}, 0);
  schedule.begin({5, 0}, 1s, true);
  schedule.abandon(2s);
  CHECK(schedule.asked() == 0);
  CHECK_FALSE(schedule.add({1, {0}, {}, 0}));
  schedule.skip_to(4);
  schedule.begin({5, 0}, 3s, true);
  CHECK(schedule.asked() == 5);
  CHECK_FALSE(schedule.overdue(63s));
  CHECK(schedule.overdue(64s));
}

TEST_CASE("without an interval and without clocks none is ever due") {
  checkpoint_schedule schedule(job_of(consistency_mode::asp), {0ms, 0}, 0);
  CHECK_FALSE(schedule.due({500, 0}, 500s));
}

TEST_CASE("by clocks: asp cuts after so many batches of each worker slot") {
  checkpoint_schedule schedule(job_of(consistency_mode::asp), {2000ms, 10}, 0);
  schedule.restart({0, 0}, 0s);
  CHECK_FALSE(schedule.due({39, 0}, 9s));
  CHECK(schedule.due({40, 0}, 9s));
}

TEST_CASE("bsp cuts at a clock ahead of every server, and further ahead the faster they are") {
  checkpoint_schedule schedule(job_of(consistency_mode::bsp), {2000ms, 0}, 0);
  schedule.restart({0, 0}, 0s);
  schedule.begin({40, 10}, 2s, true);
  CHECK(schedule.asked_clock() == 12);
  schedule.abandon(2s);
  schedule.observe({400, 100}, 2500ms);
  schedule.begin({400, 100}, 2500ms, true);
  CHECK(schedule.asked_clock() == 200);
  schedule.fail(3s); // The request was still too late: go twice as far ahead.
  schedule.begin({200, 50}, 3s, true);
  CHECK(schedule.asked_clock() == 250); // The job has 250 clocks.
}

TEST_CASE("bsp by clocks: cuts are multiples, but for the last one") {
  checkpoint_schedule schedule(job_of(consistency_mode::bsp), {2000ms, 10}, 0);
  schedule.restart({0, 0}, 0s);
  CHECK_FALSE(schedule.due({4, 1}, 1s));
  CHECK(schedule.due({28, 7}, 1s));
  schedule.begin({28, 7}, 1s, true);
  CHECK(schedule.asked_clock() == 10);
  schedule.committed(2s);
  CHECK_FALSE(schedule.due({48, 12}, 2s));
  schedule.begin({1000, 250}, 3s, false);
  CHECK(schedule.asked_clock() == 250);
}

} // namespace
} // namespace troupe::checkpoint_schedule_test
