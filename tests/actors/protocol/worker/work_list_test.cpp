#include "actors/protocol/worker/work_list.hpp"

#include "doctest/doctest.h"

namespace work_list_test {

using namespace troupe;

namespace {

lease lease_of(std::uint64_t id, std::uint64_t first, std::uint32_t count,
               std::uint32_t stride = 1) {
  return {id, {first}, count, stride};
}

std::vector<std::uint64_t> done_of(const work_list& work, std::uint64_t lease) {
  std::vector<std::uint64_t> batches;
  for (const auto& x : work.progress())
    if (x.lease.id == lease)
      for (const auto batch : x.done)
        batches.push_back(batch.value);
  return batches;
}

void do_next(work_list& work) {
  const auto batch = *work.next();
  work.in_flight(batch);
  work.done(batch);
}

} // namespace

TEST_CASE("without_leases_there_is_nothing_to_do") {
  work_list work;
  CHECK_FALSE(work.next());
  CHECK(work.progress().empty());
}

TEST_CASE("the_smallest_open_batch_is_next") {
  work_list work;
  work.set_leases({lease_of(1, 10, 2, 4), lease_of(2, 11, 1)});
  for (const std::uint64_t expected : {10u, 11u, 14u}) {
    REQUIRE(work.next());
    CHECK(work.next()->value == expected);
    do_next(work);
  }
  CHECK_FALSE(work.next());
}

TEST_CASE("a_lease_that_became_wholly_done_is_told_once") {
  work_list work;
  work.set_leases({lease_of(1, 0, 2)});
  do_next(work);
  CHECK_FALSE(work.take_finished());
  do_next(work);
  CHECK(work.take_finished());
  CHECK_FALSE(work.take_finished());
  CHECK(done_of(work, 1) == std::vector<std::uint64_t>{0, 1});
}

TEST_CASE("a_batch_whose_push_failed_is_open_again") {
  work_list work;
  work.set_leases({lease_of(1, 0, 2)});
  work.in_flight({0});
  CHECK(work.is_in_flight({0}));
  CHECK(work.next()->value == 1);
  work.reopen({0});
  CHECK_FALSE(work.is_in_flight({0}));
  CHECK(work.next()->value == 0);
}

TEST_CASE("leases_no_longer_listed_are_forgotten_with_their_batches") {
  work_list work;
  work.set_leases({lease_of(1, 0, 3), lease_of(2, 3, 1)});
  do_next(work);
  work.in_flight({1});
  work.set_leases({lease_of(2, 3, 1)});
  CHECK(work.next()->value == 3);
  CHECK_FALSE(work.is_in_flight({1}));
  work.done({1});   // The push reply comes late,
  work.reopen({1}); // or the push's failure.
  CHECK(work.next()->value == 3);
  CHECK(work.progress().size() == 1);
}

TEST_CASE("a_listed_lease_goes_on_where_it_was") {
  work_list work;
  work.set_leases({lease_of(1, 0, 3)});
  do_next(work);
  work.in_flight({1});
  work.set_leases({lease_of(1, 0, 3)});
  CHECK(work.next()->value == 2);
  CHECK(done_of(work, 1) == std::vector<std::uint64_t>{0});
}

TEST_CASE("a_new_lease_opens_batches_that_were_done_under_an_older_one") {
  work_list work;
  work.set_leases({lease_of(1, 0, 4)});
  do_next(work);
  do_next(work);
  SUBCASE("beside the old one") { work.set_leases({lease_of(1, 0, 4), lease_of(2, 1, 1)}); }
  SUBCASE("in its place") { work.set_leases({lease_of(2, 1, 1)}); }
  CHECK(done_of(work, 2).empty());
  CHECK(work.next()->value == 1);
  do_next(work);
  CHECK(done_of(work, 2) == std::vector<std::uint64_t>{1});
  CHECK(work.take_finished());
}

TEST_CASE("a_batch_in_flight_is_not_opened_by_a_new_lease") {
  work_list work;
  work.set_leases({lease_of(1, 0, 1)});
  work.in_flight({0});
  work.set_leases({lease_of(1, 0, 1), lease_of(2, 0, 1)});
  CHECK_FALSE(work.next());
  work.done({0});
  CHECK(done_of(work, 1).size() == 1);
  CHECK(done_of(work, 2).size() == 1);
}

TEST_CASE("a_batch_taken_away_and_given_back_is_not_done_twice") {
  work_list work;
  work.set_leases({lease_of(1, 0, 1)});
  work.in_flight({0});
  work.set_leases({});
  work.set_leases({lease_of(2, 0, 1)});
  CHECK(work.next()->value == 0);
  work.done({0}); // The reply to the first push.
  CHECK_FALSE(work.next());
  CHECK(work.take_finished());
}

TEST_CASE("clear_forgets_everything") {
  work_list work;
  work.set_leases({lease_of(1, 0, 3)});
  work.in_flight({0});
  work.clear();
  CHECK_FALSE(work.next());
  CHECK_FALSE(work.is_in_flight({1}));
  work.set_leases({lease_of(1, 0, 3)});
  CHECK(work.next()->value == 0);
}

TEST_CASE("a_lease_may_get_shorter_at_both_ends") {
  work_list work;
  work.set_leases({lease_of(1, 0, 4)});
  work.in_flight({0});
  work.set_leases({lease_of(1, 1, 2)});
  CHECK_FALSE(work.is_in_flight({0}));
  CHECK(work.next()->value == 1);
  work.in_flight({1});
  work.in_flight({2});
  CHECK_FALSE(work.next());
  work.done({1});
  work.set_leases({lease_of(1, 2, 1)});
  CHECK_FALSE(work.next());
  work.done({2});
  CHECK(work.take_finished());
}

TEST_CASE("a_lease_that_was_shortened_and_is_whole_again_is_done_to_its_end") {
  work_list work;
  work.set_leases({lease_of(1, 0, 4)});
  do_next(work);
  work.set_leases({lease_of(1, 0, 1)});
  work.set_leases({lease_of(1, 0, 4)});
  CHECK(done_of(work, 1) == std::vector<std::uint64_t>{0});
  for (const std::uint64_t expected : {1u, 2u, 3u}) {
    REQUIRE(work.next());
    CHECK(work.next()->value == expected);
    do_next(work);
  }
  CHECK_FALSE(work.next());
}

} // namespace work_list_test
