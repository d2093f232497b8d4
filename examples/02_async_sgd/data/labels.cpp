// Maps the labels of text files to numbers of classes.
#include "examples/02_async_sgd/data/labels.hpp"

#include "base/quote.hpp"
#include "examples/02_async_sgd/data/text_lines.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

using troupe::errc;
using troupe::result;

namespace async_sgd {

namespace {

using class_numbers = std::map<std::string, std::uint32_t>;

result<class_numbers> classes_of(const labels_of_file& train) {
  class_numbers classes;
  if (train.labels.names().size() < 2)
    return {errc::malformed, "fewer than 2 different labels in " + train.path};
  std::vector<std::pair<double, std::string>> order;
  bool numeric = true;
  for (const auto& one : train.labels.names()) {
    classes.emplace(one.text, 0);
    double number = 0.0;
    numeric = parse_number(one.text, number) && numeric;
  }
  for (const auto& [name, unused] : classes) {
    double number = 0.0;
    if (numeric) // Otherwise all numbers are equal, and the names decide.
      parse_number(name, number);
    order.emplace_back(number, name);
  }
  std::ranges::sort(order);
  for (std::uint32_t i = 0; i < order.size(); ++i)
    classes[order[i].second] = i;
  return classes;
}

/// Writes the number of each row's class to `numbers`, and counts rows.
result<void> number_rows(const labels_of_file& from, const class_numbers& classes,
                         std::vector<std::uint32_t>& numbers, std::vector<class_count>& counts) {
  counts.resize(classes.size());
  for (const auto& [name, number] : classes)
    counts[number].name = name;
  std::vector<std::uint32_t> of_name;
  for (const auto& one : from.labels.names()) {
    const auto found = classes.find(one.text);
    if (found == classes.end())
      return bad_line("label " + troupe::quote(one.text) + " does not occur in the training file",
                      from.path, one.line);
    of_name.push_back(found->second);
    counts[found->second].rows = one.rows;
  }
  numbers.reserve(from.labels.size());
  for (const std::uint32_t row : from.labels.rows())
    numbers.push_back(of_name[row]);
  return {};
}

} // namespace

std::string class_name(std::string_view label) {
  constexpr double exact_end = 9007199254740992.0; // 2^53: a double rounds larger integers.
  double number = 0.0;
  if (!parse_number(label, number) || std::abs(number) >= exact_end)
    return std::string(label);
  if (number == std::trunc(number))
    return std::to_string(static_cast<std::int64_t>(number));
  std::array<char, 32> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  return {digits.data(), end};
}

std::uint32_t label_column::index_of(std::string_view label, std::uint32_t line) {
  if (const auto found = spellings_.find(label); found != spellings_.end())
    return found->second;
  const std::string text = class_name(label);
  auto index =
    static_cast<std::uint32_t>(std::ranges::find(names_, text, &name::text) - names_.begin());
  if (index == names_.size()) {
    if (names_.size() == names_max)
      return no_name;
    names_.push_back({text, 0, line});
  }
  spellings_.emplace(label, index);
  return index;
}

bool label_column::add(std::string_view label, std::uint32_t line) {
  const std::uint32_t index = index_of(label, line);
  if (index == no_name)
    return false;
  ++names_[index].rows;
  rows_.push_back(index);
  return true;
}

bool label_column::set_first(std::string_view label, std::uint32_t line) {
  const std::uint32_t index = index_of(label, line);
  if (index == no_name)
    return false;
  ++names_[index].rows;
  names_[index].line = line;
  rows_.front() = index;
  return true;
}

result<numbered_labels> number_labels(const labels_of_file& train, const labels_of_file& test) {
  const auto classes = classes_of(train);
  if (!classes)
    return classes.error();
  numbered_labels made;
  if (auto done = number_rows(train, *classes, made.train, made.train_classes); !done)
    return done.error();
  if (auto done = number_rows(test, *classes, made.test, made.test_classes); !done)
    return done.error();
  return made;
}

std::string too_many_labels() {
  return "more than " + std::to_string(label_column::names_max)
         + " different labels: is the class in the last column (CSV: see --label) or the first "
           "word (LIBSVM)?";
}

} // namespace async_sgd
