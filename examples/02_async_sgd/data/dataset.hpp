// Holds training and test data in memory, and makes rows of f32 from a batch of them.
#pragma once

#include "base/error.hpp"
#include "examples/02_async_sgd/data/digits.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace async_sgd {

/// Dense rows of bytes; a feature is its byte / 255.
struct byte_rows {
  std::unique_ptr<std::uint8_t[]> values;
};

/// Dense rows.
struct float_rows {
  std::vector<float> values;
};

/// Compressed rows: row i has the entries [first[i], first[i + 1]), with columns in any order.
struct sparse_rows {
  std::vector<std::uint64_t> first = {0};
  std::vector<std::uint32_t> columns;
  std::vector<float> values;
};

/// Samples in the order of their file: a label below dataset::classes and one row each.
struct samples {
  std::vector<std::uint32_t> labels;
  std::variant<byte_rows, float_rows, sparse_rows, digit_cache> rows;
};

/// Training and test samples. Thread safety: immutable to its readers.
struct dataset {
  std::string name; ///< As given to load_dataset().
  std::uint32_t features = 0;
  std::uint32_t classes = 0; ///< 2 or more.
  samples train;
  samples test;
  /// Lines for the user on the data's content and its doubtful parts.
  std::vector<std::string> remarks;
  std::vector<std::string> files; ///< Paths of the files; empty if the samples were drawn.
};

/// Options of the file formats.
struct data_options {
  std::string label;       ///< csv: name of the label's column or its number from 1; empty: last.
  bool zero_based = false; ///< libsvm: indices count from 0.
};

/// Loads one of
///   digits               60,000 + 10,000 drawn images, see digits.hpp; takes no time
///   mnist:DIR            the four IDX files of MNIST, or of a set in its form
///   libsvm:TRAIN,TEST    text, `label index:value ...`; the labels of TRAIN, sorted, are classes
///   csv:TRAIN,TEST       numeric columns and a label column of numbers or names. Columns are
///                        standardised with mean and deviation of TRAIN. A header is recognised.
/// Each file may be packed by gzip, bzip2 or xz. Errors: io_failed, damaged, malformed,
/// invalid_argument; the text is one line, which names file and line or offset.
troupe::result<dataset> load_dataset(const std::string& text, const data_options& options = {});

/// Returns 16 hexadecimal digits that nearly always differ for other labels, values or test data.
std::string checksum_of(const dataset& data);

/// Writes the rows `which` of dense or drawn samples to `out`.
/// Requires: rows are not sparse. Shapes: out f32[which.size(), features].
void gather(const samples& from, std::uint32_t features, std::span<const std::uint32_t> which,
            std::span<float> out);

/// Adds the features that occur in the rows `which`, each as often as it occurs.
void add_features(const sparse_rows& rows, std::span<const std::uint32_t> which,
                  std::vector<std::uint64_t>& to);

} // namespace async_sgd
