// Labels of text files become the numbers of classes.
#include "examples/02_async_sgd/readers.hpp"

#include <algorithm>
#include <map>
#include <utility>

using troupe::errc;
using troupe::result;

namespace async_sgd {

namespace {

using class_numbers = std::map<std::string, std::uint32_t>;

result<class_numbers> classes_of(const label_column& train) {
  constexpr std::size_t classes_max = 1000; // More is a column of numbers, not of classes.
  class_numbers classes;
  for (const std::string& label : train.labels) {
    classes.emplace(label, 0);
    if (classes.size() > classes_max)
      return {errc::malformed,
              "more than " + std::to_string(classes_max) + " different labels in " + train.path
                + ": is the class the last column (CSV) or the first word (LIBSVM)?"};
  }
  if (classes.size() < 2)
    return {errc::malformed, "fewer than 2 different labels in " + train.path};
  std::vector<std::pair<double, std::string>> order;
  bool numeric = true;
  for (const auto& [label, unused] : classes) {
    double number = 0.0;
    numeric = parse_number(label, number) && numeric;
    order.emplace_back(number, label);
  }
  if (numeric) // Otherwise the map's order stays.
    std::ranges::sort(order);
  for (std::uint32_t i = 0; i < order.size(); ++i)
    classes[order[i].second] = i;
  return classes;
}

result<std::vector<std::uint32_t>> numbers_of(const label_column& column,
                                              const class_numbers& classes) {
  std::vector<std::uint32_t> numbers;
  numbers.reserve(column.labels.size());
  for (std::size_t i = 0; i < column.labels.size(); ++i) {
    const auto found = classes.find(column.labels[i]);
    if (found == classes.end())
      return bad_line("label '" + column.labels[i] + "' does not occur in the training file",
                      column.path, column.lines[i]);
    numbers.push_back(found->second);
  }
  return numbers;
}

} // namespace

result<numbered_labels> number_labels(const label_column& train, const label_column& test) {
  const auto classes = classes_of(train);
  if (!classes)
    return classes.error();
  auto train_numbers = numbers_of(train, *classes);
  if (!train_numbers)
    return train_numbers.error();
  auto test_numbers = numbers_of(test, *classes);
  if (!test_numbers)
    return test_numbers.error();
  return numbered_labels{static_cast<std::uint32_t>(classes->size()), *std::move(train_numbers),
                         *std::move(test_numbers)};
}

} // namespace async_sgd
