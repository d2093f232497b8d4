#include "actors/protocol/gossip/copy_cadence.hpp"

#include "doctest/doctest.h"

namespace troupe::copy_cadence_test {

namespace {

using namespace std::chrono_literals;

copy_cadence begun_at(time_point now) {
  copy_cadence made;
  made.joined(now);
  made.begun();
  return made;
}

} // namespace

TEST_CASE("a peer asks for values each 2 s until it has some") {
  copy_cadence when;
  when.joined(1s);
  CHECK(when.asks(1s));
  when.asked(1s);
  CHECK_FALSE(when.asks(2999ms));
  CHECK(when.asks(3s));
  when.joined(1500ms); // A new collector does not know that it was asked.
  CHECK(when.asks(1500ms));
  when.begun();
  CHECK_FALSE(when.asks(9s));
}

TEST_CASE("a copy is sent when it has changed, each 0.5 s") {
  auto when = begun_at(1s);
  CHECK_FALSE(when.sends(1s));
  when.changed();
  CHECK(when.sends(1s));
  when.sent(1s);
  when.taken(1001ms);
  CHECK_FALSE(when.sends(9s));
  when.changed();
  CHECK_FALSE(when.sends(1499ms));
  CHECK(when.sends(1500ms));
}

TEST_CASE("a copy that is long under way is sent less often, but after 5 s") {
  auto when = begun_at(1s);
  when.sent(1s);
  when.changed();
  CHECK_FALSE(when.sends(5999ms)); // The collector does not have it.
  CHECK(when.sends(6s));           // Or did not say so.
  when.taken(1100ms);
  CHECK_FALSE(when.sends(2999ms));
  CHECK(when.sends(3s));
  when.sent(3s);
  when.changed();
  when.taken(4s);
  CHECK_FALSE(when.sends(7999ms));
  CHECK(when.sends(8s));
}

TEST_CASE("a copy is sent at once to a new collector, and when the worker rests") {
  auto when = begun_at(1s);
  when.sent(1s);
  when.joined(1100ms);
  CHECK(when.sends(1100ms));
  when.sent(1100ms);
  when.changed();
  when.rests();
  CHECK_FALSE(when.sends(1200ms)); // One at a time.
  when.taken(1200ms);
  CHECK(when.sends(1200ms));
}

TEST_CASE("a peer without values sends no copy") {
  copy_cadence when;
  when.joined(1s);
  when.changed();
  CHECK_FALSE(when.sends(9s));
}

} // namespace troupe::copy_cadence_test
