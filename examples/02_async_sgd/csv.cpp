// Comma-separated numbers, the class in the last column. A first line without any number in front
// of its last column is a header.
#include "examples/02_async_sgd/readers.hpp"

#include <algorithm>
#include <cmath>

using troupe::errc;
using troupe::result;

namespace async_sgd {

namespace {

struct csv_file {
  label_column labels;
  std::vector<float> values; ///< f32[rows, features]
  std::size_t features = 0;
};

std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> fields;
  for (;;) {
    const auto comma = line.find(',');
    std::string_view field = trim(line.substr(0, comma));
    if (field.size() >= 2 && field.front() == '"' && field.back() == '"')
      field = field.substr(1, field.size() - 2);
    fields.push_back(field);
    if (comma == std::string_view::npos)
      return fields;
    line.remove_prefix(comma + 1);
  }
}

bool is_header(const std::vector<std::string_view>& fields) {
  double ignored = 0.0;
  return std::none_of(fields.begin(), fields.end() - 1,
                      [&](std::string_view field) { return parse_number(field, ignored); });
}

/// Adds a line to `file`, or learns the number of columns from the first.
std::optional<std::string> take(std::string_view line, std::uint32_t number, csv_file& file) {
  const std::vector<std::string_view> fields = split(line);
  const std::size_t features = fields.size() - 1;
  if (file.features == 0) {
    if (features == 0)
      return "a single column, no feature";
    file.features = features;
    if (is_header(fields))
      return std::nullopt;
  }
  if (features != file.features)
    return std::to_string(features + 1) + " columns instead of "
           + std::to_string(file.features + 1);
  for (std::size_t i = 0; i < features; ++i) {
    double value = 0.0;
    if (!parse_number(fields[i], value))
      return "bad number '" + std::string(fields[i]) + "' in column " + std::to_string(i + 1);
    file.values.push_back(static_cast<float>(value));
  }
  if (fields.back().empty())
    return "no label in the last column";
  file.labels.labels.emplace_back(fields.back());
  file.labels.lines.push_back(number);
  return std::nullopt;
}

result<csv_file> read_csv(const std::string& path) {
  csv_file file;
  file.labels.path = path;
  const auto read = read_lines(
    path, [&](std::string_view line, std::uint32_t number) { return take(line, number, file); });
  if (!read)
    return read.error();
  if (file.labels.labels.empty())
    return {errc::malformed, "no line with data: " + path};
  return file;
}

/// Moves both files' columns to mean 0 and deviation 1 of the training file. A column that is
/// constant there is only moved.
void standardise(csv_file& train, csv_file& test) {
  const std::size_t features = train.features;
  const auto rows = static_cast<double>(train.labels.labels.size());
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

} // namespace

result<dataset> load_csv(const std::string& train, const std::string& test) {
  auto train_file = read_csv(train);
  if (!train_file)
    return train_file.error();
  auto test_file = read_csv(test);
  if (!test_file)
    return test_file.error();
  if (train_file->features != test_file->features)
    return bad_line(std::to_string(test_file->features + 1) + " columns, but "
                      + std::to_string(train_file->features + 1) + " in the training file",
                    test, 1);
  auto labels = number_labels(train_file->labels, test_file->labels);
  if (!labels)
    return labels.error();
  standardise(*train_file, *test_file);
  dataset data;
  data.features = static_cast<std::uint32_t>(train_file->features);
  data.classes = labels->classes;
  data.train = {std::move(labels->train), float_rows{std::move(train_file->values)}};
  data.test = {std::move(labels->test), float_rows{std::move(test_file->values)}};
  return data;
}

} // namespace async_sgd
