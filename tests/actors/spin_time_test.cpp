#include "actors/links/spin_time.hpp"

#include "doctest/doctest.h"

using namespace troupe::detail;
using namespace std::chrono_literals;

TEST_CASE("who_waits_briefly_spins_longer_and_longer_up_to_a_limit") {
  spin_time spin;
  CHECK(spin.get() == 0ns);
  for (const auto expected : {25us, 50us, 100us, 100us}) {
    spin.waited(10us);
    CHECK(spin.get() == expected);
  }
}

TEST_CASE("one_long_wait_ends_it") {
  spin_time spin;
  for (int i = 0; i < 5; ++i)
    spin.waited(spin_time::max);
  CHECK(spin.get() == spin_time::max);
  spin.waited(spin_time::max + 1ns);
  CHECK(spin.get() == 0ns);
}
