// Numbers the classes of text files by their labels.
#pragma once

#include "base/error.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace async_sgd {

/// Returns one name for all spellings of a number: "1" for 1, 1.0 and +1. Other words, and numbers
/// that a double rounds, stay as they are.
std::string class_name(std::string_view label);

/// Labels of a file in the order of its rows.
class label_column {
public:
  static constexpr std::size_t names_max = 1000; ///< A column with more holds numbers, not classes.

  struct name {
    std::string text;
    std::uint64_t rows = 0;
    std::uint32_t line = 0; ///< Line of its first row.
  };

  /// Adds the next row's label. Returns false if it is one name too many.
  bool add(std::string_view label, std::uint32_t line);
  /// Changes the first row's label from a placeholder to `label`. Returns false as add() does.
  bool set_first(std::string_view label, std::uint32_t line);
  /// Adds a row without a label, for set_first() or drop_first().
  void add_place() { rows_.push_back(no_name); }
  void drop_first() { rows_.erase(rows_.begin()); }

  std::size_t size() const { return rows_.size(); }
  const std::vector<name>& names() const { return names_; }
  /// Returns for each row the index of its name.
  const std::vector<std::uint32_t>& rows() const { return rows_; }

private:
  static constexpr std::uint32_t no_name = 0xffffffff;

  /// Returns the index of the label's name, or no_name if it is one too many.
  std::uint32_t index_of(std::string_view label, std::uint32_t line);

  std::vector<name> names_;
  std::vector<std::uint32_t> rows_;
  std::map<std::string, std::uint32_t, std::less<>> spellings_;
};

/// A class and its rows in one file.
struct class_count {
  std::string name;
  std::uint64_t rows = 0;
};

struct numbered_labels {
  std::vector<std::uint32_t> train;
  std::vector<std::uint32_t> test;
  std::vector<class_count> train_classes; ///< In the order of their numbers.
  std::vector<class_count> test_classes;  ///< The same classes.
};

/// Labels and the path of their file. Borrowed: both.
struct labels_of_file {
  const std::string& path;
  const label_column& labels;
};

/// Numbers the labels of the training file as classes, in numeric order if all are numbers, else in
/// alphabetic order. Errors: malformed, if there are fewer than 2, or `test` has another label.
troupe::result<numbered_labels> number_labels(const labels_of_file& train,
                                              const labels_of_file& test);

/// Returns "more than 1000 different labels: ...".
std::string too_many_labels();

} // namespace async_sgd
