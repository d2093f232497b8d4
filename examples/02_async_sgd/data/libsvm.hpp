// Reads LIBSVM text. A line is `label index:value ...`. `qid:N` behind the label names a group of
// ranking data; # begins a comment.
#pragma once

#include "examples/02_async_sgd/data/dataset.hpp"
#include "examples/02_async_sgd/data/labels.hpp"
#include "examples/02_async_sgd/data/text_lines.hpp"

#include <cstdint>
#include <string>

namespace async_sgd {

struct libsvm_file {
  std::string path;
  label_column labels;
  sparse_rows rows;
  std::uint32_t features = 0;    ///< Columns up to the last one that occurs.
  std::uint64_t grouped = 0;     ///< Rows with a `qid:N`, which is not used.
  bool has_first_column = false; ///< Some row has the lowest index.
};

/// Reads a file. Errors: malformed.
troupe::result<libsvm_file> parse_libsvm(const input_text& from, const data_options& options);

/// Makes both files a data set. Errors: malformed, if they do not fit together.
troupe::result<dataset> join_libsvm(libsvm_file train, libsvm_file test,
                                    const data_options& options);

} // namespace async_sgd
