#include "serialization/rows.hpp"

#include <algorithm>

namespace troupe {

std::size_t first_unordered(std::span<const std::uint64_t> keys) {
  // Each stretch is tested without a branch per key, and searched only if the test fails.
  constexpr std::size_t stretch_max = 1024;
  for (std::size_t first = 1; first < keys.size(); first += stretch_max) {
    const std::size_t end = std::min(keys.size(), first + stretch_max);
    bool ordered = true;
    for (std::size_t i = first; i < end; ++i)
      ordered &= keys[i - 1] < keys[i];
    for (std::size_t i = first; !ordered && i < end; ++i)
      if (keys[i - 1] >= keys[i])
        return i;
  }
  return keys.size();
}

} // namespace troupe
