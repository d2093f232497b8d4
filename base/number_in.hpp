// Reads a number that must be in a range.
#pragma once

#include "base/error.hpp"
#include "base/number_fit.hpp"
#include "base/number_from.hpp"
#include "base/quote.hpp"

#include "fmt/format.h"

#include <string>
#include <type_traits>

namespace troupe {

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
