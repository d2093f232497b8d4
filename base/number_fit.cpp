#include "base/number_fit.hpp"

#include "base/quote.hpp"

#include <charconv>
#include <cmath>
#include <limits>
#include <locale>
#include <sstream>
#include <system_error>

namespace troupe {

template <class Number>
number_fit fit_of(std::string_view text) {
  using limits = std::numeric_limits<Number>;
  double number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem == std::errc::invalid_argument || end != text.data() + text.size())
    return number_fit::no_number;
  if (problem == std::errc::result_out_of_range) { // It leaves open which limit is passed.
    std::istringstream in{std::string{text}};
    in.imbue(std::locale::classic());
    in >> number; // Becomes the nearest number.
    return std::abs(number) > 1 ? number_fit::too_large : number_fit::too_small;
  }
  if (!std::isfinite(number))
    return number_fit::no_number;
  const auto rounded = static_cast<Number>(number); // "3.4028235e38" becomes the greatest float.
  if (!std::isfinite(rounded))
    return number_fit::too_large;
  return number != 0 && std::abs(rounded) < limits::min() ? number_fit::too_small
                                                          : number_fit::fits;
}

template <class Number>
std::optional<std::string> size_fault(std::string_view text) {
  constexpr bool is_float = sizeof(Number) == sizeof(float);
  const auto bits = std::to_string(8 * sizeof(Number));
  switch (fit_of<Number>(text)) {
  case number_fit::too_small:
    return quote(text) + " is too small for a number of " + bits + " bits, whose least above 0 is "
           + (is_float ? "1.2e-38" : "2.3e-308");
  case number_fit::too_large:
    return quote(text) + " is too large for a number of " + bits + " bits, whose greatest is "
           + (is_float ? "3.4e38" : "1.7e308");
  default: return std::nullopt;
  }
}

template number_fit fit_of<float>(std::string_view);
template number_fit fit_of<double>(std::string_view);
template std::optional<std::string> size_fault<float>(std::string_view);
template std::optional<std::string> size_fault<double>(std::string_view);

} // namespace troupe
