// One function for each file format, and what they share. load_dataset() is the way in.
#pragma once

#include "examples/02_async_sgd/dataset.hpp"
#include "serialization/error.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace async_sgd {

troupe::result<dataset> load_mnist(const std::string& directory);
troupe::result<dataset> load_libsvm(const std::string& train, const std::string& test);
troupe::result<dataset> load_csv(const std::string& train, const std::string& test);

/// A plain or gzipped file, read from its start.
class input_file {
public:
  static troupe::result<input_file> open(const std::string& path);

  /// Fills `out` as far as the file goes; returns the number of bytes read.
  troupe::result<std::size_t> read(std::span<std::uint8_t> out);

private:
  struct closer {
    void operator()(void* file) const;
  };

  input_file(std::string path, void* file) : path_(std::move(path)), file_(file) {}

  std::string path_;
  std::unique_ptr<void, closer> file_; ///< A gzFile.
};

/// The whole file. Errors: malformed, where it is empty.
troupe::result<std::string> read_text(const std::string& path);

/// Cuts a text into lines, without their ends, and counts them.
class line_reader {
public:
  explicit line_reader(std::string_view text) : rest_(text) {}

  /// The next line that is not blank, trimmed; false at the end.
  bool next(std::string_view& line);
  std::uint32_t number() const { return number_; } ///< Of the line returned last, from 1.

private:
  std::string_view rest_;
  std::uint32_t number_ = 0;
};

std::string_view trim(std::string_view text);
/// A decimal number that fills `text` and fits in f32; a leading + is allowed.
bool parse_number(std::string_view text, double& number);
/// "bad feature 'x' (FILE line 7)".
troupe::failure bad_line(const std::string& what, const std::string& path, std::uint32_t line);

/// Labels of a file, each with its line.
struct label_column {
  std::vector<std::string> labels;
  std::vector<std::uint32_t> lines;
};

/// Classes of the labels of the training file: numbers in their order, else names in theirs.
/// Errors: malformed, where there are fewer than 2 or more than 1000.
troupe::result<std::map<std::string, std::uint32_t>> number_labels(const label_column& train,
                                                                   const std::string& path);
/// Errors: malformed, where a label is not in `classes`.
troupe::result<std::vector<std::uint32_t>>
to_classes(const label_column& column, const std::map<std::string, std::uint32_t>& classes,
           const std::string& path);

} // namespace async_sgd
