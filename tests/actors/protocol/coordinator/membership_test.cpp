#include "actors/protocol/coordinator/membership.hpp"

#include "doctest/doctest.h"

namespace troupe::membership_test {
namespace {

using namespace std::chrono_literals;
using standing = membership::standing;

status_message from(const member_id& who, std::uint64_t sequence) {
  status_message what;
  what.from = who;
  what.sequence = sequence;
  return what;
}

const member_id old_worker{role::worker, 2, {10}};
const member_id new_worker{role::worker, 2, {11}};
const member_id old_server{role::server, 2, {20}};
const member_id new_server{role::server, 2, {21}};

TEST_CASE("the first status takes the slot; old and repeated ones are told apart") {
  membership members;
  CHECK(members.hear(from(old_worker, 3), 1s) == standing::joined);
  CHECK(members.hear(from(old_worker, 3), 1s) == standing::repeated);
  CHECK(members.hear(from(old_worker, 2), 1s) == standing::repeated);
  CHECK(members.hear(from(old_worker, 4), 1s) == standing::news);
  CHECK(members.hear(from(old_server, 1), 1s) == standing::joined);
}

TEST_CASE("a second live incarnation is refused once the first was heard after it") {
  membership members;
  members.hear(from(old_worker, 1), 1s);
  CHECK_FALSE(members.gives_way(new_worker, 1100ms));
  CHECK(members.hear(from(new_worker, 1), 1100ms) == standing::waiting);
  for (int i = 0; i < 6; ++i)
    members.hear(from(old_worker, 2 + i), 1150ms + i * 100ms);
  CHECK(members.hear(from(new_worker, 2), 1700ms) == standing::refused);
}

TEST_CASE("a pause of the coordinator is no proof that the first one lives") {
  membership members;
  members.hear(from(old_server, 1), 1s);
  CHECK(members.hear(from(new_server, 1), 1100ms) == standing::waiting);
  members.extend_deadlines(2s);
  CHECK(members.hear(from(new_server, 2), 3200ms) == standing::waiting);
}

TEST_CASE("a worker that was silent for 500 ms gives way, a server does not") {
  membership members;
  members.hear(from(old_worker, 1), 1s);
  members.hear(from(old_server, 1), 1s);
  CHECK(members.gives_way(new_worker, 1501ms) == old_worker);
  CHECK_FALSE(members.gives_way(new_server, 1501ms));
  CHECK(members.hear(from(new_server, 1), 1501ms) == standing::waiting);
  CHECK(members.hear(from(new_server, 2), 3s) == standing::waiting);
}

TEST_CASE("whoever lost its connection gives way, unless it was heard since") {
  membership members;
  members.hear(from(old_server, 1), 1s);
  members.on_disconnect(old_server, 1s);
  CHECK(members.gives_way(new_server, 1050ms) == old_server);
  members.hear(from(old_server, 2), 1060ms);
  CHECK_FALSE(members.gives_way(new_server, 1070ms));
}

TEST_CASE("a dead member never gets a slot again, and frees it for others") {
  membership members;
  members.hear(from(old_server, 1), 1s);
  CHECK(members.mark_dead(old_server));
  CHECK_FALSE(members.mark_dead(old_server));
  CHECK(members.hear(from(old_server, 2), 1s) == standing::dead);
  CHECK(members.hear(from(new_server, 1), 1s) == standing::joined);
}

TEST_CASE("silence is told after its time, a broken connection is none") {
  membership members;
  members.hear(from(old_worker, 1), 1s);
  members.hear(from(old_server, 1), 1s);
  members.on_disconnect(old_server, 1100ms);
  CHECK(members.silent(6000ms, 5000ms).empty());
  CHECK(members.silent(6001ms, 5000ms).size() == 2);
  members.extend_deadlines(5s);
  CHECK(members.silent(6001ms, 5000ms).empty());
}

TEST_CASE("who left may come back") {
  membership members;
  members.hear(from(old_worker, 1), 1s);
  members.leave(old_worker);
  CHECK(members.find(old_worker) == nullptr);
  CHECK(members.hear(from(old_worker, 2), 1s) == standing::joined);
}

TEST_CASE("each observer has a slot of its own") {
  membership members;
  CHECK(members.hear(from({role::observer, 0, {1}}, 1), 1s) == standing::joined);
  CHECK(members.hear(from({role::observer, 0, {2}}, 1), 1s) == standing::joined);
}

} // namespace
} // namespace troupe::membership_test
