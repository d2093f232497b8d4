// Finds out whether the first record of a CSV file names the columns, and which column has the
// labels.
#pragma once

#include "examples/02_async_sgd/data/labels.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace async_sgd {

enum class first_record {
  names,         ///< A header: no feature is a number, or an unnamed index column is in front.
  data,          ///< A row.
  counting,      ///< 0,1,2,... as pandas names columns: a header unless its label is a class.
  label_is_word, ///< A header if all other labels are numbers.
};

/// Judges the first record, whose column `label` holds the label.
first_record classify_first(std::span<const std::string_view> fields, std::size_t label);

/// Decides on first_record::counting and label_is_word when all other rows are known.
bool is_header(first_record kind, std::span<const std::string> fields, std::size_t label,
               const label_column& others);

/// Finds the label's column by its name or its number, from 1; empty: the last one.
/// `named` becomes true where the first record names it, and thus is a header.
/// Errors: invalid_argument; the text lacks the file's name.
troupe::result<std::size_t> find_label(const std::string& wanted,
                                       std::span<const std::string_view> fields, bool& named);

} // namespace async_sgd
