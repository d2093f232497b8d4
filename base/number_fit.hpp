// Reads numbers, and says whether a type can hold the number in a text.
#pragma once

#include "base/error.hpp"
#include "base/number_from.hpp"
#include "base/quote.hpp"

#include "fmt/format.h"

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
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

/// Reads a number from `least` to `greatest`; `range` says so, "from 1 to 9". Refuses 010, which
/// CLI11 takes for 8. Errors: invalid_argument.
template <class Number>
result<Number> number_in(const std::string& text, Number least, Number greatest,
                         const std::string& range) {
  if constexpr (std::is_floating_point_v<Number>)
    if (const auto misfit = size_fault<Number>(text);
        misfit && (least < 0 || !text.starts_with('-')))
      return {errc::invalid_argument, *misfit};
  const auto given = number_from<Number>(text);
  if (given && *given >= least && *given <= greatest
      && (std::is_floating_point_v<Number> || fmt::to_string(*given) == text))
    return *given;
  return {errc::invalid_argument, quote(text) + " is not a number " + range};
}

} // namespace troupe
