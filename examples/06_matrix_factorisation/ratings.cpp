#include "examples/06_matrix_factorisation/ratings.hpp"

#include "base/quote.hpp"
#include "base/splitmix64.hpp"
#include "examples/02_async_sgd/data/csv_records.hpp"
#include "examples/02_async_sgd/data/input_file.hpp"
#include "examples/02_async_sgd/data/text_lines.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

using troupe::errc;
using troupe::result;

namespace factorisation {

namespace {

using line_fault = std::optional<std::string>;

constexpr std::size_t columns_wanted = 3;
constexpr const char* wanted = " in `user item rating`, the columns that are wanted, between tabs, "
                               "blanks, commas, semicolons or ::";

/// The first columns of a line; missing ones are empty.
using column_list = std::array<std::string_view, columns_wanted>;

/// Returns the columns of a line that has none in quotes.
column_list columns_of(std::string_view line, std::string_view separator) {
  column_list columns;
  const bool is_blank = separator == " ";
  for (auto& column : columns) {
    if (is_blank)
      line.remove_prefix(std::min(line.find_first_not_of(separator), line.size()));
    const auto end = is_blank ? line.find_first_of(separator) : line.find(separator);
    column = async_sgd::trim(line.substr(0, end));
    line.remove_prefix(end == std::string_view::npos ? line.size()
                                                     : end + (is_blank ? 1 : separator.size()));
  }
  return columns;
}

/// Returns whether columns between `separator` may be in quotes. `first`: the first line. With tabs
/// one of its columns has to be so, because titles behind them may have quotes of their own.
bool is_csv(std::string_view separator, std::string_view first) {
  const auto is_quoted = [](std::string_view column) { return column.starts_with('"'); };
  return separator == "," || separator == ";"
         || (separator == "\t" && std::ranges::any_of(columns_of(first, separator), is_quoted));
}

/// Returns the columns of a record of CSV.
column_list columns_of(std::span<const std::string_view> fields) {
  column_list columns;
  for (std::size_t i = 0; i < std::min(fields.size(), columns.size()); ++i)
    columns[i] = async_sgd::trim(fields[i]);
  return columns;
}

bool has_all_columns(std::string_view line, std::string_view separator) {
  if (!is_csv(separator, line))
    return !columns_of(line, separator).back().empty();
  std::vector<std::string_view> fields;
  return async_sgd::csv_records{line, separator.front()}.next(fields)
         && fields.size() >= columns_wanted;
}

/// Returns the text between the columns of a line: the first of "::" (MovieLens 1M), a tab, a
/// semicolon, a comma and blanks that gives it all columns. Several blanks are one; between two of
/// the others a column is missing.
std::string_view separator_of(std::string_view line) {
  std::string_view found;
  for (const std::string_view each : {"::", "\t", ";", ",", " "}) {
    if (line.find(each) == std::string_view::npos)
      continue;
    if (has_all_columns(line, each))
      return each;
    if (found.empty())
      found = each;
  }
  return found.empty() ? " " : found;
}

line_fault take_key(const char* what, std::string_view word, std::uint64_t& key) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), key);
  if (error == std::errc::result_out_of_range)
    return std::string(what) + " " + troupe::quote(word) + " is above the limit of 2^64 - 1";
  if (error != std::errc{} || end != word.data() + word.size())
    return std::string("bad ") + what + " " + troupe::quote(word) + wanted;
  return std::nullopt;
}

/// Takes the lines of a file one after the other.
class rating_taker {
public:
  explicit rating_taker(const std::string& path) : path_(path) {}

  line_fault take(const column_list& columns, std::uint32_t number) {
    if (std::exchange(is_first_, false) && is_header(columns)) {
      remarks_.push_back("line " + std::to_string(number) + " of " + path_
                         + " is taken for a header");
      return header_fault(columns);
    }
    rating read;
    double value = 0;
    if (auto wrong = take_key("user", columns[0], read.user))
      return wrong;
    if (auto wrong = take_key("item", columns[1], read.item))
      return wrong;
    if (!async_sgd::parse_number(columns[2], value))
      return "bad rating: " + async_sgd::number_fault(columns[2]) + wanted;
    read.value = static_cast<float>(value);
    all_.push_back(read);
    return std::nullopt;
  }

  std::vector<rating> taken() && { return std::move(all_); }
  const std::vector<std::string>& remarks() const { return remarks_; }

private:
  /// Returns whether each column is a word that begins with a letter, perhaps behind a quote.
  static bool is_header(const column_list& columns) {
    return std::ranges::all_of(columns, [](std::string_view x) {
      x.remove_prefix(x.starts_with('"') ? 1 : 0);
      return !x.empty() && std::isalpha(static_cast<unsigned char>(x[0])) != 0;
    });
  }

  /// Returns what is wrong with a header that names the columns in another order.
  static line_fault header_fault(const column_list& columns) {
    const auto names = [](std::string_view column, std::initializer_list<std::string_view> words) {
      std::string lower(column);
      std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
      return std::ranges::any_of(
        words, [&](std::string_view word) { return lower.find(word) != std::string::npos; });
    };
    if (names(columns[0], {"item", "movie", "rating"}) || names(columns[1], {"user", "rating"})
        || (names(columns[2], {"user", "item", "movie", "time"}) && !names(columns[2], {"rating"})))
      return "the columns are " + troupe::quote(columns[0]) + ", " + troupe::quote(columns[1])
             + " and " + troupe::quote(columns[2]) + wanted;
    return std::nullopt;
  }

  std::string path_;
  bool is_first_ = true; ///< No line was taken yet.
  std::vector<rating> all_;
  std::vector<std::string> remarks_;
};

/// Passes each line of the text that is not blank to `taker`.
result<void> take_lines(const async_sgd::input_text& from, rating_taker& taker) {
  std::string_view first;
  for (async_sgd::line_cutter lines(from.text); first.empty() && lines.next(first);)
    first = async_sgd::trim(first);
  const auto separator = separator_of(first);
  if (!is_csv(separator, first))
    return async_sgd::read_lines(from, [&](std::string_view line, std::uint32_t number) {
      return taker.take(columns_of(line, separator), number);
    });
  async_sgd::csv_records records{from.text, separator.front()};
  std::vector<std::string_view> fields;
  while (records.next(fields))
    if (const auto wrong = taker.take(columns_of(fields), records.line()))
      return async_sgd::bad_line(*wrong, from.path, records.line());
  if (!records.problem().empty())
    return async_sgd::bad_line(records.problem(), from.path, records.line());
  return {};
}

result<std::vector<rating>> read_ratings(const std::string& path,
                                         std::vector<std::string>& remarks) {
  const auto bytes = async_sgd::read_bytes(path);
  if (!bytes)
    return bytes.error();
  const auto text = async_sgd::check_text({path, *bytes});
  if (!text)
    return text.error();
  rating_taker taker{path};
  if (const auto read = take_lines({path, *text}, taker); !read)
    return read.error();
  remarks.insert(remarks.end(), taker.remarks().begin(), taker.remarks().end());
  auto all = std::move(taker).taken();
  if (all.empty())
    return {errc::malformed, "no line has a rating: " + path};
  return all;
}

/// Draws ratings 1 .. 5 from four hidden factors of each user and item, and noise.
class rating_source {
public:
  rating draw() {
    const rating who{below(1000), below(1500), 0};
    double value = 3.5 + noise() / 4;
    for (std::uint64_t k = 0; k < 4; ++k)
      value += factor(who.user * 4 + k) * factor(1'000'000 + who.item * 4 + k);
    return {who.user, who.item, static_cast<float>(std::min(5.0, std::max(1.0, value)))};
  }

private:
  static double in_unit(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }
  static double factor(std::uint64_t number) {
    return 2 * in_unit(troupe::splitmix64{number}.next()) - 1;
  }
  std::uint32_t below(std::uint32_t bound) {
    return static_cast<std::uint32_t>(in_unit(random_.next()) * bound);
  }
  double noise() { return 2 * in_unit(random_.next()) - 1; }

  troupe::splitmix64 random_{1};
};

ratings drawn_ratings() {
  ratings all;
  rating_source source;
  for (int i = 0; i < 80'000; ++i)
    all.train.push_back(source.draw());
  for (int i = 0; i < 20'000; ++i)
    all.test.push_back(source.draw());
  return all;
}

result<ratings> read_both(const std::string& train, const std::string& test) {
  ratings all;
  all.files = {train, test};
  for (const auto& [path, into] : {std::pair{&train, &all.train}, std::pair{&test, &all.test}}) {
    auto read = read_ratings(*path, all.remarks);
    if (!read)
      return read.error();
    *into = *std::move(read);
  }
  return all;
}

} // namespace

result<ratings> load_ratings(const std::string& text) {
  constexpr std::string_view kind = "movielens:";
  const auto comma = text.find(',');
  const bool is_pair = text.starts_with(kind) && comma != std::string::npos && comma > kind.size()
                       && comma + 1 < text.size();
  if (text != "drawn" && !is_pair)
    return {errc::invalid_argument,
            "unknown data set " + troupe::quote(text) + "; known: drawn, movielens:TRAIN,TEST"};
  auto all = is_pair
               ? read_both(text.substr(kind.size(), comma - kind.size()), text.substr(comma + 1))
               : drawn_ratings();
  if (!all)
    return all;
  double sum = 0;
  for (const auto& each : all->train)
    sum += each.value;
  all->mean = static_cast<float>(sum / static_cast<double>(all->train.size()));
  return all;
}

} // namespace factorisation
