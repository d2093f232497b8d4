// Finds roles by their numbers, and lists their names.
#include "serialization/role.hpp"

namespace troupe {

std::vector<role> started_roles() {
  std::vector<role> all;
  for (const auto& row : role_rows)
    if (row.is_started)
      all.push_back(row.role);
  return all;
}

std::optional<role> started_role(std::uint32_t number) {
  const bool is_started = number < role_rows.size() && role_rows[number].is_started;
  return is_started ? std::optional{static_cast<role>(number)} : std::nullopt;
}

std::string names_of(const std::vector<role>& roles) {
  std::string text;
  for (const role each : roles)
    text.append(text.empty() ? "" : " or ").append(traits_of(each).name);
  return text.empty() ? "no role" : text;
}

} // namespace troupe
