#include "actors/protocol/process_name.hpp"

#include "fmt/format.h"

#include <algorithm>
#include <cstddef>

namespace troupe {

std::string to_string(const process_name& who) {
  const auto& row = traits_of(who.role);
  const bool has_number = !row.leads_job || who.index != 0;
  return std::string{row.process} + (has_number ? " " + std::to_string(who.index) : "");
}

std::string list_of(const std::vector<std::string>& names) {
  constexpr std::size_t listed_max = 8;
  const auto count = std::min(names.size(), listed_max);
  const auto end = names.begin() + static_cast<std::ptrdiff_t>(count);
  auto text = fmt::format("{}", fmt::join(names.begin(), end, ", "));
  if (names.size() > count)
    text += fmt::format(" (and {} more)", names.size() - count);
  return text;
}

} // namespace troupe
