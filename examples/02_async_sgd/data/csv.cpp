// Joins two CSV tables to a data set whose features have mean 0 and deviation 1.
#include "base/quote.hpp"
#include "examples/02_async_sgd/data/csv_file.hpp"
#include "examples/02_async_sgd/data/remarks.hpp"

#include <algorithm>
#include <cmath>

using troupe::errc;
using troupe::failure;
using troupe::result;

namespace async_sgd {

namespace {

/// Moves and scales both files' columns, so that the training file's have mean 0 and deviation 1.
/// A column that is constant in the training file is only moved.
void standardise(csv_file& train, csv_file& test) {
  const std::size_t features = train.features();
  const auto rows = static_cast<double>(train.labels.size());
  for (std::size_t column = 0; column < features; ++column) {
    double sum = 0.0, squares = 0.0;
    float least = train.values[column], most = least;
    for (std::size_t i = column; i < train.values.size(); i += features) {
      sum += static_cast<double>(train.values[i]);
      least = std::min(least, train.values[i]);
      most = std::max(most, train.values[i]);
    }
    const double mean = sum / rows;
    for (std::size_t i = column; i < train.values.size(); i += features)
      squares += std::pow(static_cast<double>(train.values[i]) - mean, 2);
    const double scale = least < most ? 1.0 / std::sqrt(squares / rows) : 1.0;
    for (csv_file* file : {&train, &test})
      for (std::size_t i = column; i < file->values.size(); i += features)
        file->values[i] = static_cast<float>((static_cast<double>(file->values[i]) - mean) * scale);
  }
}

/// Checks that both files have the same columns. Errors: malformed.
result<void> compare_columns(const csv_file& train, const csv_file& test) {
  if (train.columns != test.columns)
    return bad_line(std::to_string(test.columns) + " columns, but " + std::to_string(train.columns)
                      + " in the training file",
                    test.path, test.first_line);
  if (train.header.empty() || test.header.empty())
    return {};
  for (std::size_t i = 0; i < train.columns; ++i)
    if (train.header[i] != test.header[i])
      return bad_line("column " + std::to_string(i + 1) + " is " + troupe::quote(test.header[i])
                        + ", but " + troupe::quote(train.header[i]) + " in the training file",
                      test.path, test.first_line);
  return {};
}

std::string separator_name(char separator) {
  return separator == '\t' ? "separator tab" : std::string("separator '") + separator + "'";
}

/// Adds remarks on a file's content and on its doubtful parts.
void remark_csv(const csv_file& file, std::span<const class_count> classes,
                std::vector<std::string>& remarks) {
  const std::string line = "line " + std::to_string(file.first_line);
  std::string text = "read " + file.path + ": " + count_of(file.labels.size(), "row") + ", "
                     + count_of(file.features(), "feature") + ", " + describe_classes(classes);
  if (file.label + 1 != file.columns)
    text += ", label in column " + std::to_string(file.label + 1);
  text += file.header.empty() ? ", no header" : ", header in " + line;
  remarks.push_back(text + ", " + separator_name(file.separator));
  double ignored = 0.0;
  if (std::ranges::any_of(file.header, [&](const auto& x) { return parse_number(x, ignored); }))
    remarks.push_back(line + " of " + file.path
                      + " is taken for a header, although it holds numbers");
  if (file.header_like_row)
    remarks.push_back(line + " of " + file.path
                      + " is taken for a row, although it could be a header");
  for (const auto& one : classes)
    if (is_missing(one.name))
      remarks.push_back("label " + troupe::quote(one.name) + " of " + file.path
                        + " is taken for a class: is it a missing value?");
  if (!file.header.empty() && file.header[0].empty() && file.label != 0)
    remarks.push_back(
      "column 1 of " + file.path
      + " has no name: is it an index that was saved too? It is taken for a feature");
}

} // namespace

result<dataset> join_csv(csv_file train, csv_file test) {
  if (auto fits = compare_columns(train, test); !fits)
    return fits.error();
  auto labels = number_labels({train.path, train.labels}, {test.path, test.labels});
  if (!labels)
    return labels.error();
  standardise(train, test);
  dataset data;
  data.files = {train.path, test.path};
  data.features = static_cast<std::uint32_t>(train.features());
  data.classes = static_cast<std::uint32_t>(labels->train_classes.size());
  remark_csv(train, labels->train_classes, data.remarks);
  remark_csv(test, labels->test_classes, data.remarks);
  remark_single_rows(train.path, labels->train_classes, data.remarks);
  data.train = {std::move(labels->train), float_rows{std::move(train.values)}};
  data.test = {std::move(labels->test), float_rows{std::move(test.values)}};
  return data;
}

} // namespace async_sgd
