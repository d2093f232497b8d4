// Makes fragments as a peer sends them, for fuzz targets.
#pragma once

#include "actors/transport/frames/fragment.hpp"
#include "tests/serialization/frame_bytes.hpp"
#include "tests/serialization/random_messages.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace troupe::test {

inline void append(std::vector<std::byte>& to, std::span<const std::byte> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

/// Returns frames of one to three random messages, cut anywhere, with signs of life. Fragments of a
/// class stay in order.
inline std::vector<std::byte> random_fragments(random_source& random) {
  std::array<std::vector<std::byte>, traffic_classes> waiting;
  for (auto count = 1 + random.below(3); count > 0; --count) {
    const auto what = random_message(random, random.below(message_kinds));
    append(waiting[static_cast<std::size_t>(traffic_class_of(what))], flatten(wire::encode(what)));
  }
  std::vector<std::byte> made;
  for (std::size_t empty = 0; empty < waiting.size() && made.size() < 1500;) {
    const auto i = random.below(waiting.size());
    auto& rest = waiting[i];
    const auto length = std::min<std::size_t>(random.below(400), rest.size());
    const auto traffic = length == 0 ? traffic_class::control : static_cast<traffic_class>(i);
    append(made, encode(detail::fragment_header{static_cast<std::uint32_t>(length), traffic}));
    append(made, std::span{rest}.first(length));
    rest.erase(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(length));
    empty =
      static_cast<std::size_t>(std::ranges::count_if(waiting, &std::vector<std::byte>::empty));
  }
  return made;
}

/// Returns whether some bytes look like a frame's prefix with a segment of `segment_bytes_max` or
/// more. Allocating such a segment takes long, and the frame cannot be complete.
__attribute__((no_sanitize("address", "undefined", "coverage"))) // The scan is part of the harness.
inline bool
has_large_segment(std::span<const std::byte> bytes, std::size_t segment_bytes_max) {
  for (std::size_t at = 0; at + 16 <= bytes.size(); ++at) {
    std::uint32_t words[3];
    __builtin_memcpy(words, bytes.data() + at, sizeof words);
    if (words[0] == 1 && std::max(words[1], words[2]) >= segment_bytes_max / 8)
      return true;
  }
  return false;
}

} // namespace troupe::test
