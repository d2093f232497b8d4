#include "base/base64.hpp"

#include <cstdint>

namespace troupe::storage::detail {

namespace {

constexpr std::string_view alphabet =
  "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

} // namespace

std::string to_base64(std::string_view bytes) {
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const auto group = bytes.substr(at, 3);
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 3; ++i)
      bits = bits << 8 | (i < group.size() ? static_cast<unsigned char>(group[i]) : 0u);
    for (std::size_t i = 0; i < 4; ++i)
      text.push_back(i <= group.size() ? alphabet[bits >> (18 - 6 * i) & 63] : '=');
  }
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  std::string bytes;
  if (text.size() % 4 != 0)
    return std::nullopt;
  for (std::size_t at = 0; at < text.size(); at += 4) {
    std::uint32_t bits = 0;
    for (const char letter_variant : text.substr(at, 4)) {
      const auto value = alphabet.find(letter_variant);
      bits = bits << 6 | (value == std::string_view::npos ? 0u : static_cast<unsigned>(value));
    }
    for (int shift = 16; shift >= 0; shift -= 8)
      bytes.push_back(static_cast<char>(bits >> shift & 0xff));
  }
  for (int padding = 0; padding < 2 && text.ends_with(std::string(padding + 1, '=')); ++padding)
    bytes.pop_back();
  // Input that is not base64 encodes to another text.
  return to_base64(bytes) == text ? std::optional{std::move(bytes)} : std::nullopt;
}

} // namespace troupe::storage::detail
