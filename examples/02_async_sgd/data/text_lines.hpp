// Text in memory: its lines, and the numbers and words in them.
#pragma once

#include "base/error.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace async_sgd {

/// A file's content and the name that messages give it. Borrowed: both.
struct input_text {
  const std::string& path;
  std::string_view text;
};

/// Returns the text without a UTF-8 byte order mark.
/// Errors: malformed, where it is empty, has a NUL byte, is UTF-16, or is packed or a tar archive.
troupe::result<std::string_view> check_text(const input_text& from);

/// Cuts a text into lines, which end with LF, CRLF or CR.
class line_cutter {
public:
  explicit line_cutter(std::string_view text) : text_(text) {}

  /// Returns false at the end of the text.
  bool next(std::string_view& line);
  std::uint32_t number() const { return number_; } ///< The last line's, from 1.

private:
  std::string_view text_;
  std::size_t begin_ = 0;     ///< Of the next line.
  std::size_t line_feed_ = 0; ///< The first one from begin_ on, where it is not below begin_.
  std::uint32_t number_ = 0;
};

/// Returns what is wrong with a line; nullopt: nothing.
using line_taker = std::function<std::optional<std::string>(std::string_view line, std::uint32_t)>;

/// Hands each line that is not blank, trimmed, and its number, from 1, to `take`.
/// Errors: malformed, where `take` objects ("bad feature 'x' (FILE line 7)").
troupe::result<void> read_lines(const input_text& from, const line_taker& take);

std::string_view trim(std::string_view text);

/// Reads a decimal number that fills `text` and fits in f32; a leading + is allowed. A number too
/// small for a double is 0.
bool parse_number(std::string_view text, double& number);
/// Says why parse_number() refuses `text`: "a missing value 'NA'", "bad number 'x'".
std::string number_fault(std::string_view text);
/// Returns whether `text` is empty or one of the words that stand for no value, such as NA.
bool is_missing(std::string_view text);

/// "bad feature 'x' (FILE line 7)".
troupe::failure bad_line(const std::string& what, const std::string& path, std::uint32_t line);

} // namespace async_sgd
