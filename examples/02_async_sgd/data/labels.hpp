// Labels of text files and the classes that they stand for.
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
  static constexpr std::size_t names_max = 1000; ///< More is a column of numbers, not of classes.

  struct name {
    std::string text;
    std::uint64_t rows = 0;
    std::uint32_t line = 0; ///< The first row's.
  };

  /// Adds the next row's label; returns false where it is one name too many.
  bool add(std::string_view label, std::uint32_t line);
  /// Changes the first row's label, which was a place holder, to `label`; false as for add().
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

  /// Returns the index of the label's name, or no_name where it is one too many.
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

/// Labels and the file that they come from. Borrowed: both.
struct labels_of_file {
  const std::string& path;
  const label_column& labels;
};

/// Classes are the labels of the training file: numbers in their order, else names in theirs.
/// Errors: malformed, where there are fewer than 2, or `test` has another one.
troupe::result<numbered_labels> number_labels(const labels_of_file& train,
                                              const labels_of_file& test);

/// "more than 1000 different labels: ..."
std::string too_many_labels();

} // namespace async_sgd
