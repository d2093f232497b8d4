#include "actors/protocol/process_name.hpp"

#include "fmt/format.h"

#include <algorithm>
#include <cstddef>

namespace troupe {

std::string to_string(const process_name& who) {
  const auto number = " " + std::to_string(who.index);
  switch (who.role) {
  case role::coordinator: return who.index == 0 ? "coordinator" : "coordinator" + number;
  case role::server: return "server" + number;
  case role::worker: return "worker" + number;
  case role::observer: return "launcher" + number;
  }
  return "unknown";
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
