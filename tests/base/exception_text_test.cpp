#include "base/exception_text.hpp"

#include "doctest/doctest.h"

#include <functional>
#include <stdexcept>

namespace exception_text_test {

using namespace troupe;

TEST_CASE("whatever_is_thrown_has_a_text") {
  const auto text_of = [](const std::function<void()>& thrower) {
    try {
      thrower();
    } catch (...) {
      return exception_text();
    }
    return std::string{};
  };
  CHECK(text_of([] { throw std::runtime_error{"no data"}; }) == "no data");
  CHECK(text_of([] { throw 7; }) == "the program threw something that is no std::exception");
}

} // namespace exception_text_test
