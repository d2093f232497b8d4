// Reads every byte once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace troupe::bench {

/// Returns the sum of 8-byte words, and of the 4 bytes behind them. The bytes may lie anywhere.
inline std::uint64_t checksum(const void* from, std::size_t size_bytes) {
  const auto* at = static_cast<const std::byte*>(from);
  std::uint64_t sum = 0, word = 0;
  for (std::size_t i = 0; i < size_bytes / sizeof word; ++i) {
    std::memcpy(&word, at + i * sizeof word, sizeof word);
    sum += word;
  }
  if (size_bytes % sizeof word != 0) {
    std::uint32_t last = 0;
    std::memcpy(&last, at + size_bytes / sizeof word * sizeof word, sizeof last);
    sum += last;
  }
  return sum;
}

} // namespace troupe::bench
