#include "base/number_fit.hpp"

#include "doctest/doctest.h"

namespace troupe::test::number_fit_test {

TEST_CASE("a float holds a number between its limits, and 0") {
  using enum number_fit;
  for (const char* text : {"0", "-0.0", "1", "-2.5e3", "1.2e-38", "3.4e38", "0e-999",
                           "1.17549435e-38", "3.4028235e38"})
    CHECK_MESSAGE(fit_of<float>(text) == fits, text);
  for (const char* text : {"1e-300", "1e-39", "-1e-39", "1e-400", "1e-9999"})
    CHECK_MESSAGE(fit_of<float>(text) == too_small, text);
  for (const char* text : {"1e39", "-1e39", "1e400", "1e9999"})
    CHECK_MESSAGE(fit_of<float>(text) == too_large, text);
  for (const char* text : {"", "x", "1x", " 1", "+1", "nan", "inf", "-inf", "0x10", "1,5"})
    CHECK_MESSAGE(fit_of<float>(text) == no_number, text);
}

TEST_CASE("a double holds more") {
  CHECK(fit_of<double>("1e-300") == number_fit::fits);
  CHECK(fit_of<double>("1e300") == number_fit::fits);
  CHECK(fit_of<double>("1e-310") == number_fit::too_small);
  CHECK(fit_of<double>("1e-400") == number_fit::too_small);
  CHECK(fit_of<double>("1e400") == number_fit::too_large);
}

TEST_CASE("a number that does not fit is told with the limit") {
  CHECK(size_fault<float>("1e-300")
        == "'1e-300' is too small for a number of 32 bits, whose least above 0 is 1.2e-38");
  CHECK(size_fault<double>("1e400")
        == "'1e400' is too large for a number of 64 bits, whose greatest is 1.7e308");
  CHECK_FALSE(size_fault<float>("1"));
  CHECK_FALSE(size_fault<float>("x"));
}

} // namespace troupe::test::number_fit_test
