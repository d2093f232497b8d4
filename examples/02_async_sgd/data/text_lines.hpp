// Cuts text in memory into lines, and reads the numbers and words in them.
#pragma once

#include "base/error.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace async_sgd {

/// A file's content and its name in messages. Borrowed: both.
struct input_text {
  const std::string& path;
  std::string_view text;
};

/// Returns the text without a UTF-8 byte order mark.
/// Errors: malformed, if it is empty, has a NUL byte, is UTF-16 or UTF-32, packed or an archive.
troupe::result<std::string_view> check_text(const input_text& from);

/// Cuts a text into lines, which end with LF, CRLF or CR.
class line_cutter {
public:
  explicit line_cutter(std::string_view text) : text_(text) {}

  /// Returns false at the end of the text.
  bool next(std::string_view& line);
  std::uint32_t number() const { return number_; } ///< Number of the last line, from 1.

private:
  std::string_view text_;
  std::size_t begin_ = 0;     ///< Begin of the next line.
  std::size_t line_feed_ = 0; ///< Unless below begin_: the first line feed from begin_ on.
  std::uint32_t number_ = 0;
};

/// Takes a line and its number. Returns the error in it, or nullopt.
using line_taker = std::function<std::optional<std::string>(std::string_view line, std::uint32_t)>;

/// Trims each line that is not blank and passes it, with its number from 1, to `take`.
/// Errors: malformed, if `take` returns an error ("bad feature 'x' (FILE line 7)").
troupe::result<void> read_lines(const input_text& from, const line_taker& take);

std::string_view trim(std::string_view text);

/// Reads a decimal number that fills `text` and fits in f32; a leading + is allowed. A number too
/// small for a double is 0.
bool parse_number(std::string_view text, double& number);
/// Says why parse_number() refuses `text`: "a missing value 'NA'", "bad number 'x'".
std::string number_fault(std::string_view text);
/// Returns whether `text` is empty or a word for a missing value, such as NA.
bool is_missing(std::string_view text);

/// Returns the failure "bad feature 'x' (FILE line 7)".
troupe::failure bad_line(const std::string& what, const std::string& path, std::uint32_t line);

} // namespace async_sgd
