#include "base/near_name.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <vector>

namespace troupe {

namespace {

std::size_t edits_between(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1); // Edits from the part of `from` that was read.
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    auto diagonal = row[0]++;
    for (std::size_t j = 0; j < to.size(); ++j) {
      const auto replaced = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

} // namespace

std::string near_name(std::string_view word, std::span<const std::string> names) {
  constexpr std::size_t characters_max = 64; // Longer words are no misspelt names.
  if (word.size() > characters_max)
    return "";
  const std::string* nearest = nullptr;
  auto fewest = std::numeric_limits<std::size_t>::max();
  for (const auto& name : names) {
    const bool begins = word.size() > 2 && name.starts_with(word);
    const auto edits = begins ? 1 : edits_between(word, name);
    if (edits < fewest && edits <= word.size() / 3) {
      fewest = edits;
      nearest = &name;
    }
  }
  return nearest ? *nearest : "";
}

} // namespace troupe
