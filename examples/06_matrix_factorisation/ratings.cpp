#include "examples/06_matrix_factorisation/ratings.hpp"

#include "base/quote.hpp"
#include "base/splitmix64.hpp"
#include "examples/02_async_sgd/data/input_file.hpp"
#include "examples/02_async_sgd/data/text_lines.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>

using troupe::errc;
using troupe::result;

namespace factorisation {

namespace {

using line_fault = std::optional<std::string>;

constexpr std::size_t columns_wanted = 3;
constexpr const char* wanted = " in `user item rating`, the columns that are wanted, between tabs, "
                               "blanks, commas or ::";

/// Returns the text between the columns of a line: "::" (MovieLens 1M), a tab, a comma, or blanks.
/// Several blanks are one; between two of the others a column is missing.
std::string_view separator_of(std::string_view line) {
  for (const std::string_view each : {"::", "\t", ","})
    if (line.find(each) != std::string_view::npos)
      return each;
  return " ";
}

/// Returns the first three columns of a line; missing ones are empty.
std::array<std::string_view, columns_wanted> columns_of(std::string_view line,
                                                        std::string_view separator) {
  std::array<std::string_view, columns_wanted> columns;
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

  line_fault take(std::string_view line, std::uint32_t number) {
    const bool is_first = separator_.empty();
    if (is_first)
      separator_ = separator_of(line);
    const auto columns = columns_of(line, separator_);
    if (is_first && is_header(columns)) {
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
  using column_list = std::array<std::string_view, columns_wanted>;

  /// Returns whether each column is a word that begins with a letter or a quote.
  static bool is_header(const column_list& columns) {
    return std::ranges::all_of(columns, [](std::string_view x) {
      return !x.empty() && (std::isalpha(static_cast<unsigned char>(x[0])) != 0 || x[0] == '"');
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
  std::string_view separator_; ///< Empty in front of the first line.
  std::vector<rating> all_;
  std::vector<std::string> remarks_;
};

result<std::vector<rating>> read_ratings(const std::string& path,
                                         std::vector<std::string>& remarks) {
  const auto bytes = async_sgd::read_bytes(path);
  if (!bytes)
    return bytes.error();
  const auto text = async_sgd::check_text({path, *bytes});
  if (!text)
    return text.error();
  rating_taker taker{path};
  const auto read =
    async_sgd::read_lines({path, *text}, [&](std::string_view line, std::uint32_t number) {
      return taker.take(line, number);
    });
  if (!read)
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
