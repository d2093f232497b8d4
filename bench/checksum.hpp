// Reads every byte once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace troupe::bench {

/// Returns the sum of 8-byte words, and of the 4 bytes behind them. The bytes may lie anywhere.
/// There are four sums at a time: a single one costs as much as a copy, and more where the compiler
/// aligns its loop badly.
inline std::uint64_t checksum(const void* from, std::size_t size_bytes) {
  const auto* at = static_cast<const std::byte*>(from);
  const auto word = [](const std::byte* here) {
    std::uint64_t read = 0;
    std::memcpy(&read, here, sizeof read);
    return read;
  };
  constexpr std::size_t stretch = 4 * sizeof(std::uint64_t);
  std::uint64_t a = 0, b = 0, c = 0, d = 0;
  const auto* const end = at + size_bytes;
  for (; static_cast<std::size_t>(end - at) >= stretch; at += stretch) {
    a += word(at);
    b += word(at + 8);
    c += word(at + 16);
    d += word(at + 24);
  }
  for (; end - at >= 8; at += 8)
    a += word(at);
  if (at != end) {
    std::uint32_t last = 0;
    std::memcpy(&last, at, sizeof last);
    a += last;
  }
  return a + b + c + d;
}

} // namespace troupe::bench
