#include "base/enumerators.hpp"

#include "doctest/doctest.h"

#include <array>
#include <cstdint>

namespace troupe::test::enumerators_test {

enum class colour : std::uint8_t { red, green, blue };

struct row {
  colour of;
};

constexpr std::array whole{row{colour::red}, row{colour::green}, row{colour::blue}};
constexpr std::array without_last{row{colour::red}, row{colour::green}};
constexpr std::array out_of_order{row{colour::red}, row{colour::blue}, row{colour::green}};

TEST_CASE("a number is an enumerator if it has a name") {
  CHECK(is_enumerator<colour::blue>());
  CHECK(is_enumerator<static_cast<colour>(0)>());
  CHECK(!is_enumerator<static_cast<colour>(3)>());
}

TEST_CASE("a table is whole if it has a row for each enumerator, in their order") {
  CHECK(has_row_for_each<whole, &row::of>());
  CHECK(!has_row_for_each<without_last, &row::of>());
  CHECK(!has_row_for_each<out_of_order, &row::of>());
}

} // namespace troupe::test::enumerators_test
