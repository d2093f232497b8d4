// Reads a CSV file as a table: values of its features, labels of its rows, names of its columns.
#pragma once

#include "examples/02_async_sgd/data/dataset.hpp"
#include "examples/02_async_sgd/data/labels.hpp"
#include "examples/02_async_sgd/data/text_lines.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace async_sgd {

struct csv_file {
  std::string path;
  char separator = ',';
  std::size_t columns = 0;
  std::size_t label = 0;           ///< Index of the column of labels.
  std::vector<std::string> header; ///< Names of all columns; empty if the file has none.
  std::uint32_t first_line = 0;    ///< Number of the header's or the first row's line.
  bool header_like_row = false;    ///< The first row could be pandas' default header.
  label_column labels;
  std::vector<float> values; ///< f32[rows, features]

  std::size_t features() const { return columns - 1; }
};

/// Reads a table. `train`: the training file if this is the test file, or null; its label column
/// and header help to find those of this file. Errors: malformed.
troupe::result<csv_file> parse_csv(const input_text& from, const data_options& options,
                                   const csv_file* train = nullptr);

/// Standardises both tables by the training file's columns and makes them a data set.
/// Errors: malformed, if the files do not fit together.
troupe::result<dataset> join_csv(csv_file train, csv_file test);

} // namespace async_sgd
