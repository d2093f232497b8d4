// Reads a number that is a whole text, whatever the program's locale.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace troupe {

/// Returns nullopt if the text is no number of this type, or has anything around it.
template <class Number>
std::optional<Number> number_from(std::string_view text) {
  Number value{};
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || problem != std::errc{} || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

} // namespace troupe
