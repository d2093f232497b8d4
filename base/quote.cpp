#include "base/quote.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace troupe {

namespace {

/// The first character of a text: its length in bytes and, if it is UTF-8, its number.
struct character {
  std::size_t bytes = 1;
  std::uint32_t number = 0;
  bool valid = false;
};

/// Reads UTF-8 as RFC 3629 defines it: no surrogates, no longer form than needed.
character first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint32_t lead = byte(0);
  if (lead < 0x80)
    return {1, lead, true};
  const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes)
    return {};
  std::uint32_t number = lead & (0x7fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80)
      return {};
    number = number << 6 | (byte(i) & 0x3fu);
  }
  const std::uint32_t least = bytes == 4 ? 0x10000 : bytes == 3 ? 0x800 : 0x80;
  if (number < least || number > 0x10ffff || (number >= 0xd800 && number <= 0xdfff))
    return {};
  return {bytes, number, true};
}

bool is_control(std::uint32_t number) { return number < 0x20 || (number >= 0x7f && number < 0xa0); }

/// Returns whether a terminal hides the character or changes the direction of text for it.
bool is_invisible(std::uint32_t number) {
  return number == 0xad || (number >= 0x200b && number <= 0x200f)
         || (number >= 0x2028 && number <= 0x202e) || (number >= 0x2060 && number <= 0x206f)
         || number == 0xfeff;
}

void append_escaped(std::string_view bytes, std::string& to) {
  constexpr std::string_view digits = "0123456789abcdef";
  for (const char c : bytes) {
    const auto byte = static_cast<std::uint8_t>(c);
    to += "\\x";
    to += digits[byte >> 4];
    to += digits[byte & 15];
  }
}

} // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const auto next = first_of(text);
    if (!next.valid)
      return false;
    text.remove_prefix(next.bytes);
  }
  return true;
}

std::string quote(std::string_view text) {
  constexpr std::size_t characters_max = 40;
  return "'" + printable(text, characters_max) + "'";
}

std::string printable(std::string_view text, std::size_t limit) {
  std::string shown;
  for (std::size_t count = 0; !text.empty(); ++count) {
    if (count == limit)
      return shown + "...";
    const auto next = first_of(text);
    const auto bytes = text.substr(0, next.bytes);
    if (next.valid && !is_control(next.number) && !is_invisible(next.number))
      shown += bytes;
    else
      append_escaped(bytes, shown);
    text.remove_prefix(next.bytes);
  }
  return shown;
}

std::string with_short_words(std::string_view text) {
  constexpr std::size_t bytes_max = 200, characters_kept = 40;
  std::string shortened;
  while (!text.empty()) {
    const auto end = std::min(text.find(' '), text.size());
    const auto word = text.substr(0, end);
    shortened += word.size() > bytes_max ? printable(word, characters_kept) : std::string{word};
    if (end < text.size())
      shortened += ' ';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return shortened;
}

std::string escape_bytes(std::string_view text) {
  std::string escaped;
  while (!text.empty()) {
    const auto next = first_of(text);
    const auto bytes = text.substr(0, next.bytes);
    if (next.valid && !is_control(next.number) && next.number != '\\')
      escaped += bytes;
    else
      append_escaped(bytes, escaped);
    text.remove_prefix(next.bytes);
  }
  return escaped;
}

std::string unescape_bytes(std::string_view text) {
  std::string bytes;
  while (!text.empty()) {
    std::uint8_t byte = 0;
    const char* const digits = text.data() + 2;
    if (text.size() >= 4 && text.starts_with("\\x")
        && std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2) {
      bytes += static_cast<char>(byte);
      text.remove_prefix(4);
    } else {
      bytes += text.front();
      text.remove_prefix(1);
    }
  }
  return bytes;
}

} // namespace troupe
