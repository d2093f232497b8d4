#include "examples/02_async_sgd/data/libsvm.hpp"

#include "base/quote.hpp"
#include "examples/02_async_sgd/data/remarks.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

using troupe::errc;
using troupe::result;

namespace async_sgd {

namespace {

constexpr std::uint32_t columns_max = 1u << 28; // A table of more rows does not fit in memory.

using line_fault = std::optional<std::string>;

/// Cuts the first word off `rest`.
std::string_view take_word(std::string_view& rest) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
  const auto begin = std::find_if_not(rest.begin(), rest.end(), is_blank);
  const auto end = std::find_if(begin, rest.end(), is_blank);
  rest = {end, rest.end()};
  return {begin, end};
}

/// Says why an index is refused. It parses the word again, as only messages need the text.
std::string index_fault(std::string_view word, std::uint32_t lowest) {
  const std::string_view index = word.substr(0, word.find(':'));
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(index.data(), index.data() + index.size(), number);
  const bool is_number = index.size() < word.size() && error != std::errc::invalid_argument
                         && end == index.data() + index.size();
  if (!is_number)
    return "bad feature " + troupe::quote(word) + ", not index:value";
  if (error == std::errc{} && number < lowest)
    return "bad feature " + troupe::quote(word)
           + ": indices count from 1; give --zero-based where they count from 0";
  return "bad feature " + troupe::quote(word) + ": its index is above the limit of "
         + std::to_string(columns_max - 1 + lowest);
}

std::string libsvm_value_fault(std::string_view word) {
  const std::string_view value = word.substr(word.find(':') + 1);
  return "bad feature " + troupe::quote(word) + ": " + number_fault(value);
}

/// The largest label: it fits in an int. "+1", "1" and "1.0" are one label.
constexpr double label_max = 1e9;

bool is_whole(std::string_view word) {
  double number = 0.0;
  return parse_number(word, number) && std::abs(number) <= label_max
         && number == std::trunc(number);
}

class libsvm_parser {
public:
  libsvm_parser(libsvm_file& file, bool zero_based) : file_(file), lowest_(zero_based ? 0 : 1) {}

  /// Adds a line to the file.
  line_fault take(std::string_view line, std::uint32_t number) {
    line = line.substr(0, line.find('#'));
    std::string_view word = take_word(line);
    if (word.empty())
      return std::nullopt;
    if (!is_whole(word))
      return word.find(':') != std::string_view::npos
               ? "no label in front of " + troupe::quote(word)
               : "bad label " + troupe::quote(word) + ", not a whole number up to 1000000000";
    if (!file_.labels.add(word, number))
      return too_many_labels();
    word = take_word(line);
    if (is_group(word)) {
      ++file_.grouped;
      word = take_word(line);
    }
    for (; !word.empty(); word = take_word(line))
      if (auto wrong = take_feature(word))
        return wrong;
    return end_row();
  }

private:
  static bool is_group(std::string_view word) {
    return word.size() > 4 && word.starts_with("qid:")
           && std::all_of(word.begin() + 4, word.end(),
                          [](char c) { return c >= '0' && c <= '9'; });
  }

  line_fault take_feature(std::string_view word) {
    std::uint32_t index = 0;
    double value = 0.0;
    const char* const last = word.data() + word.size();
    const auto [end, error] = std::from_chars(word.data(), last, index);
    if (error != std::errc{} || end == last || *end != ':' || index < lowest_
        || index - lowest_ >= columns_max)
      return index_fault(word, lowest_);
    if (!parse_number({end + 1, last}, value))
      return libsvm_value_fault(word);
    const std::uint32_t column = index - lowest_;
    auto& columns = file_.rows.columns;
    is_sorted_ =
      is_sorted_ && (columns.size() == file_.rows.first.back() || columns.back() < column);
    columns.push_back(column);
    file_.rows.values.push_back(static_cast<float>(value));
    file_.features = std::max(file_.features, column + 1);
    file_.has_first_column = file_.has_first_column || column == 0;
    return std::nullopt;
  }

  line_fault end_row() {
    const auto begin = static_cast<std::ptrdiff_t>(file_.rows.first.back());
    file_.rows.first.push_back(file_.rows.columns.size());
    if (std::exchange(is_sorted_, true))
      return std::nullopt;
    std::vector<std::uint32_t> sorted(file_.rows.columns.begin() + begin, file_.rows.columns.end());
    std::ranges::sort(sorted);
    const auto twice = std::ranges::adjacent_find(sorted);
    if (twice == sorted.end())
      return std::nullopt;
    return "index " + std::to_string(*twice + lowest_) + " is there twice";
  }

  libsvm_file& file_;
  std::uint32_t lowest_;
  bool is_sorted_ = true; ///< Columns of the current row ascend.
};

void remark_libsvm(const libsvm_file& file, std::span<const class_count> classes,
                   std::vector<std::string>& remarks) {
  remarks.push_back("read " + file.path + ": " + count_of(file.labels.size(), "row") + ", "
                    + count_of(file.features, "feature") + ", " + describe_classes(classes));
  if (file.grouped > 0)
    remarks.push_back("ignored qid:N in " + count_of(file.grouped, "row") + " of " + file.path
                      + ": groups of ranking data are not used");
}

/// Remarks on features that no training row has: their weights keep their initial values.
void remark_unknown_features(const libsvm_file& train, const libsvm_file& test,
                             std::vector<std::string>& remarks) {
  std::vector<bool> known(std::max(train.features, test.features));
  for (const std::uint32_t column : train.rows.columns)
    known[column] = true;
  std::uint64_t unknown = 0;
  for (const std::uint32_t column : test.rows.columns)
    if (!known[column]) {
      known[column] = true;
      ++unknown;
    }
  if (unknown > 0)
    remarks.push_back(count_of(unknown, "feature") + " of " + test.path
                      + (unknown == 1 ? " does" : " do") + " not occur in " + train.path);
}

} // namespace

result<libsvm_file> parse_libsvm(const input_text& from, const data_options& options) {
  const auto text = check_text(from);
  if (!text)
    return text.error();
  libsvm_file file;
  file.path = from.path;
  libsvm_parser parser(file, options.zero_based);
  const auto read =
    read_lines({from.path, *text}, [&](std::string_view line, std::uint32_t number) {
      return parser.take(line, number);
    });
  if (!read)
    return read.error();
  if (file.features == 0)
    return {errc::malformed, "no line has a feature: " + from.path};
  return file;
}

result<dataset> join_libsvm(libsvm_file train, libsvm_file test, const data_options& options) {
  auto labels = number_labels({train.path, train.labels}, {test.path, test.labels});
  if (!labels)
    return labels.error();
  dataset data;
  data.files = {train.path, test.path};
  data.features = std::max(train.features, test.features);
  data.classes = static_cast<std::uint32_t>(labels->train_classes.size());
  remark_libsvm(train, labels->train_classes, data.remarks);
  remark_libsvm(test, labels->test_classes, data.remarks);
  if (options.zero_based && !train.has_first_column && !test.has_first_column)
    data.remarks.push_back(
      "no row has index 0: do the indices count from 1, without --zero-based?");
  remark_unknown_features(train, test, data.remarks);
  remark_single_rows(train.path, labels->train_classes, data.remarks);
  data.train = {std::move(labels->train), std::move(train.rows)};
  data.test = {std::move(labels->test), std::move(test.rows)};
  return data;
}

} // namespace async_sgd
