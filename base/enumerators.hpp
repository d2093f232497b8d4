// Checks that a table has a row for each enumerator of an enumeration.
#pragma once

#include <cstddef>
#include <iterator>
#include <string_view>
#include <type_traits>

namespace troupe {

/// Returns whether `X` is an enumerator. Compilers write other values of its type as "(type)9".
template <auto X>
requires std::is_enum_v<decltype(X)>
consteval bool is_enumerator() {
  const std::string_view text = __PRETTY_FUNCTION__;
  return text[text.rfind("X = ") + 4] != '(';
}

/// Returns whether the rows are those of the enumerators 0, 1, ... in this order, and the number
/// after the last row is no enumerator. `key`: the member of a row that names its enumerator.
template <const auto& rows, auto key>
consteval bool has_row_for_each() {
  using kind = std::remove_cvref_t<decltype(rows[0].*key)>;
  for (std::size_t i = 0; i < std::size(rows); ++i)
    if (rows[i].*key != static_cast<kind>(i))
      return false;
  return !is_enumerator<static_cast<kind>(std::size(rows))>();
}

} // namespace troupe
