#include "base/error.hpp"

#include "doctest/doctest.h"

#include <set>
#include <string>

namespace troupe::test::error_test {

TEST_CASE("every error code has a name of its own") {
  std::set<std::string> names;
  auto unknown = 0;
  for (int code = 0; code < 256; ++code) {
    const std::string name = to_string(static_cast<errc>(code));
    if (name == "unknown")
      ++unknown;
    else
      CHECK(names.insert(name).second);
  }
  CHECK(names.size() == 21);
  CHECK(unknown == 235);
}

TEST_CASE("the reaction follows from the number") {
  CHECK(reaction_to(errc::rolled_back) == reaction::drop);
  CHECK(reaction_to(errc::not_ready) == reaction::retry);
  CHECK(reaction_to(errc::shape_mismatch) == reaction::stop);
}

} // namespace troupe::test::error_test
