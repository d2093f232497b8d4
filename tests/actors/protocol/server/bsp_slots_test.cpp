#include "actors/protocol/server/bsp_slots.hpp"

#include "doctest/doctest.h"

namespace troupe::bsp_slots_test {

namespace {

/// Two passes of 5 batches in clocks of 2: 0 1 | 2 3 | 4 || 5 6 | 7 8 | 9.
job_spec two_epochs() {
  job_spec job;
  job.workers = 2;
  job.samples = 5;
  job.batch_samples = 1;
  job.epochs = 2;
  return job;
}

step_header slot(std::uint64_t batch) {
  step_header step;
  step.batch = {batch};
  return step;
}

TEST_CASE("a clock is complete when all of its slots are there, in any order") {
  bsp_slots slots{two_epochs(), 0};
  CHECK_FALSE(slots.complete());
  slots.keep(slot(1), {11}, false);
  CHECK_FALSE(slots.complete());
  CHECK(slots.first_missing() == batch_id{0});
  slots.keep(slot(0), {10}, false);
  REQUIRE(slots.complete());
  const auto next = slots.next();
  REQUIRE(next.size() == 2);
  CHECK(next[0].source == request_token{10});
  CHECK(next[1].source == request_token{11});
}

TEST_CASE("the last clock of a pass is shorter") {
  bsp_slots slots{two_epochs(), 2};
  slots.keep(slot(4), {1}, false);
  CHECK(slots.complete());
  CHECK(slots.next().size() == 1);
  slots.entered();
  slots.drop_next(true);
  CHECK(slots.clocks() == 3);
  CHECK(slots.first_missing() == batch_id{5});
}

TEST_CASE("slots of later clocks do not complete the next one") {
  bsp_slots slots{two_epochs(), 0};
  slots.keep(slot(0), {1}, false);
  slots.keep(slot(2), {2}, false);
  slots.keep(slot(3), {3}, false);
  CHECK_FALSE(slots.complete());
  slots.keep(slot(1), {4}, false);
  REQUIRE(slots.complete());
  slots.entered();
  slots.drop_next(true);
  REQUIRE(slots.complete());
  CHECK(slots.next().front().step.batch == batch_id{2});
}

TEST_CASE("after the last clock nothing is complete") {
  const job_spec job = two_epochs();
  CHECK(bsp_clock_count(job) == 6);
  bsp_slots slots{job, 5};
  slots.keep(slot(9), {1}, false);
  slots.entered();
  slots.drop_next(true);
  CHECK(slots.clocks() == 6);
  CHECK_FALSE(slots.complete());
}

TEST_CASE("a second copy waits with the first and brings no payload") {
  bsp_slots slots{two_epochs(), 0};
  slots.keep(slot(0), {1}, false);
  slots.keep(slot(0), {2}, true);
  CHECK(slots.holds({1}));
  CHECK_FALSE(slots.holds({2}));
  const auto kept = slots.next().front();
  CHECK(kept.source == request_token{1});
  CHECK(kept.waiting == std::vector<request_token>{{1}, {2}});
  CHECK(kept.counted);
}

TEST_CASE("dropping a failed clock does not count it") {
  bsp_slots slots{two_epochs(), 0};
  slots.keep(slot(0), {1}, false);
  slots.keep(slot(1), {2}, false);
  slots.keep(slot(2), {3}, false);
  slots.entered();
  slots.drop_next(false);
  CHECK(slots.clocks() == 0);
  CHECK_FALSE(slots.holds({1}));
  CHECK(slots.holds({3}));
  CHECK(slots.first_missing() == batch_id{0});
}

TEST_CASE("clocks more than 64 ahead are too far") {
  job_spec job = two_epochs();
  job.samples = 1000;
  const bsp_slots slots{job, 10};
  CHECK(slots.applied({19}));
  CHECK_FALSE(slots.applied({20}));
  CHECK_FALSE(slots.too_far({2 * 74 + 1}));
  CHECK(slots.too_far({2 * 75}));
}

} // namespace

} // namespace troupe::bsp_slots_test
