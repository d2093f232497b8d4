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

void split(std::string_view line, std::vector<std::string_view>& fields) {
  fields.clear();
  for (;;) {
    const auto comma = line.find(',');
    std::string_view field = trim(line.substr(0, comma));
    if (field.size() >= 2 && field.front() == '"' && field.back() == '"')
      field = field.substr(1, field.size() - 2);
    fields.push_back(field);
    if (comma == std::string_view::npos)
      return;
    line.remove_prefix(comma + 1);
  }
}

bool is_header(const std::vector<std::string_view>& fields) {
  double ignored = 0.0;
  return std::none_of(fields.begin(), fields.end() - 1,
                      [&](std::string_view field) { return parse_number(field, ignored); });
}

result<csv_file> read_csv(const std::string& path) {
  const auto text = read_text(path);
  if (!text)
    return text.error();
  csv_file file;
  line_reader lines(*text);
  std::vector<std::string_view> fields;
  std::string_view line;
  for (bool first = true; lines.next(line); first = false) {
    split(line, fields);
    if (first) {
      file.features = fields.size() - 1;
      if (file.features == 0)
        return bad_line("a single column, no feature", path, lines.number());
      if (is_header(fields))
        continue;
    }
    if (fields.size() - 1 != file.features)
      return bad_line(std::to_string(fields.size()) + " columns instead of "
                        + std::to_string(file.features + 1),
                      path, lines.number());
    for (std::size_t i = 0; i < file.features; ++i) {
      double number = 0.0;
      if (!parse_number(fields[i], number))
        return bad_line("bad number '" + std::string(fields[i]) + "' in column "
                          + std::to_string(i + 1),
                        path, lines.number());
      file.values.push_back(static_cast<float>(number));
    }
    if (fields.back().empty())
      return bad_line("no label in the last column", path, lines.number());
    file.labels.labels.emplace_back(fields.back());
    file.labels.lines.push_back(lines.number());
  }
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
  const auto classes = number_labels(train_file->labels, train);
  if (!classes)
    return classes.error();
  auto train_labels = to_classes(train_file->labels, *classes, train);
  if (!train_labels)
    return train_labels.error();
  auto test_labels = to_classes(test_file->labels, *classes, test);
  if (!test_labels)
    return test_labels.error();
  standardise(*train_file, *test_file);
  dataset data;
  data.features = static_cast<std::uint32_t>(train_file->features);
  data.classes = static_cast<std::uint32_t>(classes->size());
  data.train = {*std::move(train_labels), float_rows{std::move(train_file->values)}};
  data.test = {*std::move(test_labels), float_rows{std::move(test_file->values)}};
  return data;
}

} // namespace async_sgd
