// Names the modes of consistency, and reads them from text.
#include "serialization/consistency.hpp"

#include <charconv>
#include <optional>
#include <vector>

namespace troupe {

std::string to_string(const consistency& x) {
  const auto& row = x.traits();
  return std::string{row.name} + (row.has_slack ? ":" + std::to_string(x.staleness_clocks) : "");
}

/// Returns the mode of a row if `text` names it.
static std::optional<consistency> parse_as(const mode_traits& row, std::string_view text) {
  if (!text.starts_with(row.name))
    return std::nullopt;
  consistency parsed{row.mode, 0};
  text.remove_prefix(row.name.size());
  if (!row.has_slack)
    return text.empty() ? std::optional{parsed} : std::nullopt;
  if (!text.starts_with(':'))
    return std::nullopt;
  const auto* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data() + 1, last, parsed.staleness_clocks);
  const bool is_number = error == std::errc{} && end == last;
  return is_number && parsed.staleness_clocks <= staleness_clocks_max ? std::optional{parsed}
                                                                      : std::nullopt;
}

result<consistency> parse_consistency(const std::string& text) {
  for (const auto& row : mode_rows)
    if (const auto parsed = parse_as(row, text))
      return *parsed;
  const auto note = " (S: clocks, 0 to " + std::to_string(staleness_clocks_max) + ")";
  return {errc::invalid_argument,
          "consistency must be " + mode_choices(note) + ", not '" + text + "'"};
}

std::string mode_choices(std::string_view note, bool has_servers) {
  std::vector<std::string> names;
  for (const auto& row : mode_rows)
    if (!has_servers || !row.one_memory)
      names.push_back(std::string{row.name} + (row.has_slack ? ":S" + std::string{note} : ""));
  std::string text = names.front();
  for (std::size_t i = 1; i < names.size(); ++i)
    text += (i + 1 < names.size() ? ", " : " or ") + names[i];
  return text;
}

} // namespace troupe
