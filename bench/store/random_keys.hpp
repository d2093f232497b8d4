// Draws keys of a sparse table as a worker meets them: anywhere, other ones in each batch.
#pragma once

#include "serialization/rows.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace troupe::bench {

/// Returns `count` of `rows` keys that are spread over 64 bits. Requires: count <= rows.
inline row_keys random_keys(std::uint32_t width, std::uint64_t rows, std::uint64_t count,
                            std::uint64_t round) {
  const auto keys = std::make_shared<std::vector<std::uint64_t>>();
  std::uint64_t drawn = round << 32;
  while (keys->size() < count) {
    while (keys->size() < count)
      keys->push_back(row_hash(row_hash(drawn++) % rows) * 3);
    std::ranges::sort(*keys);
    keys->erase(std::unique(keys->begin(), keys->end()), keys->end());
  }
  return {{0}, width, keys->size(), {keys, keys->data()}};
}

} // namespace troupe::bench
