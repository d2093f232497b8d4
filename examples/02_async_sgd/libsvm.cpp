// LIBSVM text: a line is `label index:value ...`, indices count from 1; what follows # is a
// comment.
#include "examples/02_async_sgd/readers.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

using troupe::errc;
using troupe::failure;
using troupe::result;

namespace async_sgd {

namespace {

constexpr std::uint32_t index_max = 1u << 28; // A table of more rows does not fit in memory.

struct libsvm_file {
  label_column labels;
  sparse_rows rows;
  std::uint32_t features = 0;
};

/// Cuts the first word off `rest`.
std::string_view take_word(std::string_view& rest) {
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  const std::string_view word = rest.substr(0, rest.find_first_of(" \t"));
  rest.remove_prefix(word.size());
  return word;
}

bool parse_feature(std::string_view word, std::uint32_t& index, double& value) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), index);
  if (error != std::errc{} || end == word.data() + word.size() || *end != ':')
    return false;
  return index >= 1 && index <= index_max
         && parse_number(word.substr(static_cast<std::size_t>(end - word.data()) + 1), value);
}

/// "+1", "1" and "1.0" are one label. Up to 10^9 it fits in an int.
bool parse_label(std::string_view word, std::string& label) {
  double number = 0.0;
  if (!parse_number(word, number) || std::abs(number) > 1e9 || number != std::trunc(number))
    return false;
  label = std::to_string(static_cast<int>(number));
  return true;
}

/// Adds a line to `file`.
std::optional<std::string> take(std::string_view line, std::uint32_t number, libsvm_file& file) {
  line = line.substr(0, line.find('#'));
  std::string_view word = take_word(line);
  if (word.empty())
    return std::nullopt;
  std::string label;
  if (!parse_label(word, label))
    return "bad label '" + std::string(word) + "', not a whole number";
  file.labels.labels.push_back(std::move(label));
  file.labels.lines.push_back(number);
  for (word = take_word(line); !word.empty(); word = take_word(line)) {
    std::uint32_t index = 0;
    double value = 0.0;
    if (!parse_feature(word, index, value))
      return "bad feature '" + std::string(word) + "', not index:value";
    file.features = std::max(file.features, index);
    file.rows.columns.push_back(index - 1);
    file.rows.values.push_back(static_cast<float>(value));
  }
  file.rows.first.push_back(file.rows.columns.size());
  return std::nullopt;
}

result<libsvm_file> read_libsvm(const std::string& path) {
  libsvm_file file;
  file.labels.path = path;
  const auto read = read_lines(
    path, [&](std::string_view line, std::uint32_t number) { return take(line, number, file); });
  if (!read)
    return read.error();
  if (file.features == 0)
    return failure{errc::malformed, "no line has a feature: " + path};
  return file;
}

} // namespace

result<dataset> load_libsvm(const std::string& train, const std::string& test) {
  auto train_file = read_libsvm(train);
  if (!train_file)
    return train_file.error();
  auto test_file = read_libsvm(test);
  if (!test_file)
    return test_file.error();
  auto labels = number_labels(train_file->labels, test_file->labels);
  if (!labels)
    return labels.error();
  dataset data;
  data.features = std::max(train_file->features, test_file->features);
  data.classes = labels->classes;
  data.train = {std::move(labels->train), std::move(train_file->rows)};
  data.test = {std::move(labels->test), std::move(test_file->rows)};
  return data;
}

} // namespace async_sgd
