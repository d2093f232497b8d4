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

const node_role* node_of(const node_roles& nodes, const process_name& who) {
  const node_role* found = nullptr;
  for (const auto& each : nodes)
    if (each.process == traits_of(who.role).process && each.first <= who.index
        && (found == nullptr || each.first > found->first))
      found = &each;
  return found;
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
