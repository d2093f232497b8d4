#include "examples/02_async_sgd/data/csv_header.hpp"

#include "base/quote.hpp"
#include "examples/02_async_sgd/data/text_lines.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>

using troupe::errc;
using troupe::result;

namespace async_sgd {

namespace {

bool is_number(std::string_view text) {
  double ignored = 0.0;
  return parse_number(text, ignored);
}

/// Returns whether a field looks like a value, even one that will be refused.
bool is_value(std::string_view text) {
  std::string point(text); // For numbers with a decimal comma.
  std::ranges::replace(point, ',', '.');
  return is_number(point);
}

/// Returns whether a field can only be meant as a value but is refused: infinity, or a number that
/// is too large, in hexadecimal, or with separators of thousands.
bool is_refused_number(std::string_view text) {
  if (text.starts_with('+') || text.starts_with('-'))
    text.remove_prefix(1);
  std::string word(text);
  std::ranges::transform(word, word.begin(), [](unsigned char c) { return std::tolower(c); });
  if (word == "inf" || word == "infinity")
    return true;
  const bool is_hexadecimal = word.starts_with("0x") && word.size() > 2;
  const char* const allowed = is_hexadecimal ? "0123456789abcdefx" : "0123456789e+., '_";
  return word.find_first_not_of(allowed) == std::string::npos && !word.empty()
         && word.front() >= '0' && word.front() <= '9';
}

/// Returns whether all fields but the label's count 0, 1, 2, ... The label's column may be counted
/// or left out. The first field may be empty, like the name of pandas' index.
bool counts_from_zero(std::span<const std::string_view> fields, std::size_t label) {
  const std::size_t begin = fields[0].empty() && label != 0 ? 1 : 0;
  bool with_label = true, without_label = true;
  for (std::size_t i = begin, feature = 0; i < fields.size(); ++i)
    if (i != label) {
      with_label = with_label && fields[i] == std::to_string(i - begin);
      without_label = without_label && fields[i] == std::to_string(feature++);
    }
  return with_label || without_label;
}

std::string list_of_names(std::span<const std::string_view> fields) {
  constexpr std::size_t listed_max = 6;
  std::string text;
  for (std::size_t i = 0; i < std::min(fields.size(), listed_max); ++i)
    text += (i > 0 ? ", " : "") + troupe::quote(fields[i]);
  return text + (fields.size() > listed_max ? ", ..." : "");
}

} // namespace

first_record classify_first(std::span<const std::string_view> fields, std::size_t label) {
  const bool label_is_number = is_number(fields[label]);
  std::size_t numbers = 0, missing = 0, refused = 0;
  for (std::size_t i = 0; i < fields.size(); ++i)
    if (i != label) {
      numbers += is_value(fields[i]);
      missing += is_missing(fields[i]);
      refused += is_refused_number(fields[i]);
    }
  if (numbers == 0 && refused > 0 && missing + refused >= fields.size() - 1)
    return first_record::data; // An error message then names its values.
  if (numbers == 0)
    return missing == fields.size() - 1 ? first_record::data : first_record::names;
  if (counts_from_zero(fields, label)) {
    if (fields[0].empty() && label != 0)
      return first_record::names;
    if (!label_is_number || fields[label] == std::to_string(label))
      return first_record::counting;
  }
  return label_is_number ? first_record::data : first_record::label_is_word;
}

bool is_header(first_record kind, std::span<const std::string> fields, std::size_t label,
               const label_column& others) {
  if (others.names().empty())
    return false;
  if (kind == first_record::label_is_word)
    return std::ranges::all_of(others.names(), [](const auto& one) { return is_number(one.text); });
  const bool is_class =
    std::ranges::any_of(others.names(), [&](const auto& one) { return one.text == fields[label]; });
  // Numbers of columns and of classes look alike. A record of two columns is as likely a row.
  return !is_class || (is_number(fields[label]) && fields.size() > 2);
}

result<std::size_t> find_label(const std::string& wanted, std::span<const std::string_view> fields,
                               bool& named) {
  named = false;
  if (wanted.empty())
    return fields.size() - 1;
  std::size_t number = 0;
  const char* const end = wanted.data() + wanted.size();
  const auto [rest, error] = std::from_chars(wanted.data(), end, number);
  const bool is_index = error == std::errc{} && rest == end;
  if (is_index && number >= 1 && number <= fields.size())
    return number - 1;
  const auto found = std::ranges::find(fields, std::string_view{wanted});
  if (found != fields.end()) {
    if (std::ranges::count(fields, std::string_view{wanted}) > 1)
      return {errc::invalid_argument, "--label " + troupe::quote(wanted)
                                        + " is the name of several columns: give a number"};
    named = true;
    return static_cast<std::size_t>(found - fields.begin());
  }
  if (is_index)
    return {errc::invalid_argument, "--label " + troupe::quote(wanted) + ", but there are "
                                      + std::to_string(fields.size()) + " columns, from 1"};
  return {errc::invalid_argument, "--label " + troupe::quote(wanted)
                                    + " is no column's name; the first record is "
                                    + list_of_names(fields)};
}

} // namespace async_sgd
