#include "actors/graph/ranks/rendezvous.hpp"

#include "doctest/doctest.h"

namespace troupe::rendezvous_test {

namespace {

using ranks = std::vector<std::uint32_t>;

link_id link(std::uint64_t number) { return {number}; }

} // namespace

TEST_CASE("a_rank_reaches_for_those_behind_it_and_each_once") {
  rendezvous meeting{1, 4};
  CHECK_EQ(meeting.wanted(), ranks{2, 3});
  meeting.connecting(2, link(20));
  CHECK_EQ(meeting.wanted(), ranks{3});
  CHECK_FALSE(meeting.lost(link(20))); // No process listened there.
  CHECK_EQ(meeting.wanted(), ranks{2, 3});
  meeting.connecting(2, link(21));
  meeting.opened(2, link(21));
  CHECK_EQ(meeting.wanted(), ranks{3});
  CHECK_EQ(meeting.rank_at(link(21)), 2);
}

TEST_CASE("a_communicator_is_formed_once_all_say_that_they_have_all_links") {
  rendezvous meeting{0, 3};
  meeting.opened(1, link(1));
  meeting.complete(1);
  CHECK_FALSE(meeting.take_complete());
  CHECK_EQ(meeting.first_missing(), 2);
  meeting.opened(2, link(2));
  CHECK_FALSE(meeting.is_formed());
  CHECK(meeting.take_complete());
  CHECK_FALSE(meeting.take_complete());
  CHECK_FALSE(meeting.is_formed());
  CHECK_EQ(meeting.first_missing(), 2); // Rank 2 may have links to ranks that gave up.
  meeting.complete(2);
  CHECK(meeting.is_formed());
  CHECK_FALSE(meeting.first_missing());
}

TEST_CASE("what_a_rank_that_gave_up_has_said_does_not_count") {
  rendezvous meeting{0, 3};
  meeting.opened(1, link(1));
  meeting.opened(2, link(2));
  meeting.complete(1);
  meeting.complete(2);
  CHECK(meeting.take_complete());
  SUBCASE("its link is lost") { CHECK_EQ(meeting.lost(link(1)), 1); }
  SUBCASE("it comes once more first") {
    meeting.opened(1, link(3));
    CHECK_FALSE(meeting.lost(link(1)));
    CHECK_EQ(meeting.link_to(1), link(3));
    meeting.lost(link(3));
  }
  CHECK_FALSE(meeting.is_formed());
  CHECK_EQ(meeting.first_missing(), 1);
  CHECK_FALSE(meeting.link_to(1));
  meeting.opened(1, link(4));
  CHECK(meeting.take_complete()); // The others are told again.
  CHECK_FALSE(meeting.is_formed());
  meeting.complete(1);
  CHECK(meeting.is_formed());
}

TEST_CASE("who_is_alone_is_a_communicator") {
  rendezvous meeting{0, 1};
  CHECK(meeting.take_complete());
  CHECK(meeting.is_formed());
}

} // namespace troupe::rendezvous_test
