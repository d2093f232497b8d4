// Draws random content for messages, the same from the same seed everywhere.
#pragma once

#include "base/splitmix64.hpp"
#include "serialization/messages.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe::test {

class random_source : public splitmix64 {
public:
  using splitmix64::splitmix64;

  /// Returns a value below `end`.
  std::uint64_t below(std::uint64_t end) { return next() % end; }
  bool chance() { return below(2) == 0; }
  /// Returns a number; all magnitudes are equally likely.
  std::uint64_t number() { return next() >> below(64); }
  std::uint32_t number32() { return static_cast<std::uint32_t>(number()); }
  float real() { return static_cast<float>(below(2001)) / 16.0f - 60.0f; }

  std::string text() {
    std::string made(below(20), ' ');
    for (auto& c : made)
      c = static_cast<char>(next());
    return made;
  }

  /// Returns up to 5 results of `make`.
  template <class Make>
  auto several(Make&& make) {
    std::vector<decltype(make())> made;
    for (auto count = below(6); count > 0; --count)
      made.push_back(make());
    return made;
  }
};

} // namespace troupe::test
