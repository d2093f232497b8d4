#include "base/adaptive_spin.hpp"

#include "doctest/doctest.h"

namespace adaptive_spin_test {

using namespace troupe::detail;
using namespace std::chrono_literals;

namespace {

/// Returns the number of short waits until `spin` spins again; at most 1000.
int short_waits_before_spin(adaptive_spin& spin) {
  int count = 0;
  for (; spin.get() == 0ns && count < 1000; ++count)
    spin.waited(10us);
  return count;
}

} // namespace

TEST_CASE("after_a_short_wait_the_next_one_spins_and_goes_on_as_long_as_that_helps") {
  adaptive_spin spin;
  CHECK(spin.get() == 0ns);
  spin.waited(adaptive_spin::short_wait + 1ns);
  CHECK(spin.get() == 0ns);
  spin.waited(adaptive_spin::short_wait);
  CHECK(spin.get() == adaptive_spin::max);
  for (int i = 0; i < 100; ++i)
    spin.waited(adaptive_spin::max);
  CHECK(spin.get() == adaptive_spin::max);
}

TEST_CASE("what_was_in_vain_is_tried_less_and_less_often_until_it_helps") {
  adaptive_spin spin;
  CHECK(short_waits_before_spin(spin) == 1);
  for (const int expected : {2, 4, 8, 16, 32, 64, 64}) {
    spin.waited(adaptive_spin::max + 1ns);
    CHECK(spin.get() == 0ns);
    CHECK(short_waits_before_spin(spin) == expected);
  }
  spin.waited(1us);
  spin.waited(adaptive_spin::max + 1ns);
  CHECK(short_waits_before_spin(spin) == 2);
}

TEST_CASE("long_waits_never_make_it_spin") {
  adaptive_spin spin;
  for (int i = 0; i < 1000; ++i)
    spin.waited(1ms);
  CHECK(spin.get() == 0ns);
}

} // namespace adaptive_spin_test
