// Cuts CSV text (RFC 4180) into records of fields. A field is in quotes if it holds separators,
// line ends or quotes. Blanks around a field are no part of it.
#pragma once

#include "base/error.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace async_sgd {

/// Returns the most frequent of comma, semicolon and tab in the first record. In a tie it is not
/// the comma, which may be a decimal comma.
char separator_of(std::string_view text);

class csv_records {
public:
  csv_records(std::string_view text, char separator) : text_(text), separator_(separator) {}

  /// Reads the next record that is not a blank line. Returns false at the end of the text or if
  /// problem() is not empty. Fields are valid until the next call.
  bool next(std::vector<std::string_view>& fields);

  /// Returns the number of the line in which the last record begins, from 1.
  std::uint32_t line() const { return record_line_; }
  /// Returns the error in the last record; empty if it has none.
  const std::string& problem() const { return problem_; }

private:
  enum class field_end { separator, record };

  field_end take_field(std::string_view& field);
  std::string_view take_quoted();
  std::string_view take_bare();
  void skip_blanks();
  /// Skips a line end and counts it.
  void take_line_end();
  bool at_line_end() const;

  std::string_view text_;
  char separator_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1; ///< Line of text_[at_].
  std::uint32_t record_line_ = 0;
  std::string problem_;
  std::deque<std::string> unescaped_; ///< Fields of the last record with "" inside.
};

} // namespace async_sgd
