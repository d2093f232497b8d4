#include "base/system/draw_random.hpp"

#include "doctest/doctest.h"

namespace draw_random_test {

using namespace troupe;

TEST_CASE("drawn_numbers_differ_and_are_not_zero") {
  const auto first = draw_random();
  CHECK(first != 0);
  CHECK(draw_random() != first);
}

} // namespace draw_random_test
