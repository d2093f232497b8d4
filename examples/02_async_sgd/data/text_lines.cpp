#include "examples/02_async_sgd/data/text_lines.hpp"

#include "base/number_fit.hpp"
#include "base/quote.hpp"
#include "examples/02_async_sgd/data/packing.hpp"
#include "storage/file_content.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

using troupe::errc;
using troupe::failure;
using troupe::result;

namespace async_sgd {

namespace {

using namespace std::string_view_literals;

/// Names an encoding other than UTF-8 by its byte order mark; empty if the text has none.
std::string_view other_encoding(std::string_view text) {
  if (text.starts_with("\xff\xfe\0\0"sv) || text.starts_with("\0\0\xfe\xff"sv))
    return "UTF-32";
  return text.starts_with("\xff\xfe"sv) || text.starts_with("\xfe\xff"sv) ? "UTF-16" : "";
}

/// Names the content of unpacked bytes that are no plain text; nullopt if no known format fits.
std::optional<std::string> other_content(std::string_view text) {
  const auto head = text.substr(0, troupe::storage::file_head_bytes);
  const auto content = troupe::storage::content_of(head);
  if (!content)
    return std::nullopt;
  if (packing_of(head) != packing::none)
    return "packed twice: unpack it once";
  if (content->is_packed())
    return std::string(content->name) + " behind another packing: unpack it first";
  return content->text();
}

std::uint32_t lines_before(std::string_view text, std::size_t offset) {
  line_cutter lines(text.substr(0, offset));
  std::string_view line;
  std::uint32_t count = 0;
  while (lines.next(line))
    ++count;
  const bool begins_one = offset == 0 || text[offset - 1] == '\n' || text[offset - 1] == '\r';
  return begins_one ? count : count - 1;
}

} // namespace

result<std::string_view> check_text(const input_text& from) {
  std::string_view text = from.text;
  if (text.starts_with("\xef\xbb\xbf"))
    text.remove_prefix(3);
  if (text.empty())
    return {errc::malformed, "the file is empty: " + from.path};
  if (const auto encoding = other_encoding(text); !encoding.empty())
    return {errc::malformed, from.path + " is " + std::string(encoding) + ": save it as UTF-8"};
  if (const auto content = other_content(text))
    return {errc::malformed, from.path + " is " + *content};
  if (const auto nul = text.find('\0'); nul != std::string_view::npos)
    return bad_line("a NUL byte, so this is damaged, UTF-16 or no text", from.path,
                    lines_before(text, nul) + 1);
  return text;
}

bool line_cutter::next(std::string_view& line) {
  if (begin_ >= text_.size())
    return false;
  if (line_feed_ < begin_ || number_ == 0)
    line_feed_ = std::min(text_.find('\n', begin_), text_.size());
  const std::string_view piece = text_.substr(begin_, line_feed_ - begin_);
  const std::size_t end = std::min(piece.find('\r'), piece.size());
  line = piece.substr(0, end);
  begin_ += end + 1;
  if (begin_ == line_feed_ && end < piece.size())
    ++begin_; // CRLF is one line end.
  ++number_;
  return true;
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";
  const auto first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos)
    return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

result<void> read_lines(const input_text& from, const line_taker& take) {
  line_cutter lines(from.text);
  for (std::string_view line; lines.next(line);) {
    line = trim(line);
    if (line.empty())
      continue;
    if (const auto wrong = take(line, lines.number()))
      return bad_line(*wrong, from.path, lines.number());
  }
  return {};
}

bool parse_number(std::string_view text, double& number) {
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-'))
      return false;
  }
  // Most values of sparse files are a single digit.
  if (text.size() == 1 && text[0] >= '0' && text[0] <= '9') {
    number = text[0] - '0';
    return true;
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end != text.data() + text.size())
    return false;
  if (error == std::errc::result_out_of_range
      && troupe::fit_of<double>(text) == troupe::number_fit::too_small) {
    number = 0.0;
    return true;
  }
  constexpr double most = std::numeric_limits<float>::max(); // Also refuses NaN and infinity.
  return error == std::errc{} && std::abs(number) <= most;
}

std::string number_fault(std::string_view text) {
  if (is_missing(text))
    return "a missing value " + troupe::quote(text);
  std::string point(text);
  std::ranges::replace(point, ',', '.');
  double number = 0.0;
  if (point != text && parse_number(point, number))
    return "a decimal comma instead of a point in " + troupe::quote(text);
  std::string_view digits = text;
  if (digits.starts_with('+'))
    digits.remove_prefix(1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (end != digits.data() + digits.size() || digits.starts_with("-") != text.starts_with("-"))
    return "bad number " + troupe::quote(text);
  if (error == std::errc{} && std::isinf(number))
    return "an infinite value " + troupe::quote(text);
  return "a value too large for f32 " + troupe::quote(text);
}

bool is_missing(std::string_view text) {
  constexpr std::size_t longest = 5;
  constexpr std::array words{"na"sv, "n/a"sv, "nan"sv, "-nan"sv, "null"sv, "none"sv,
                             "?"sv,  "-"sv,   "."sv,   "nil"sv,  "#n/a"sv};
  if (text.empty())
    return true;
  if (text.size() > longest)
    return false;
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  return std::ranges::find(words, std::string_view{lower}) != words.end();
}

failure bad_line(const std::string& what, const std::string& path, std::uint32_t line) {
  return {errc::malformed, what + " (" + path + " line " + std::to_string(line) + ")"};
}

} // namespace async_sgd
