// Says whether a floating-point type can hold the number in a text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

enum class number_fit : std::uint8_t {
  fits,
  no_number, ///< Also NaN and infinity.
  too_small, ///< It is not 0 and would become 0, or keep only a part of its digits.
  too_large,
};

/// Compares the number that is the whole text with the limits of `Number`, float or double.
template <class Number>
number_fit fit_of(std::string_view text);

/// Says why `Number` cannot hold the number in `text`: "'1e-300' is too small for a number of 32
/// bits, whose least above 0 is 1.2e-38". Returns nullopt if it can, or if there is none.
template <class Number>
std::optional<std::string> size_fault(std::string_view text);

} // namespace troupe
