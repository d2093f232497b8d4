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
  names,         ///< A header: no feature is a number, or the first column, an index, has no name.
  data,          ///< A row.
  counting,      ///< 0,1,2,... as pandas names columns; a header unless its label is a class.
  label_is_word, ///< A header if all other labels are numbers.
};

/// Classifies the first record, whose column `label` holds the label.
first_record classify_first(std::span<const std::string_view> fields, std::size_t label);

/// Returns whether a record of kind `counting` or `label_is_word` is a header, when all other rows
/// are known.
bool is_header(first_record kind, std::span<const std::string> fields, std::size_t label,
               const label_column& others);

/// Finds the label's column by its name or its number, from 1; empty means the last column.
/// `named` becomes true if the first record names it, and thus is a header.
/// Errors: invalid_argument; the text lacks the file's name.
troupe::result<std::size_t> find_label(const std::string& wanted,
                                       std::span<const std::string_view> fields, bool& named);

} // namespace async_sgd
