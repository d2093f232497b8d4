// One function for each file format, and what they share. load_dataset() is the way in.
#pragma once

#include "examples/02_async_sgd/dataset.hpp"
#include "serialization/error.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

struct gzFile_s; // zlib's.

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
    void operator()(gzFile_s* file) const;
  };

  input_file(std::string path, gzFile_s* file) : path_(std::move(path)), file_(file) {}

  std::string path_;
  std::unique_ptr<gzFile_s, closer> file_;
};

/// What is wrong with a line; nullopt: nothing.
using line_taker = std::function<std::optional<std::string>(std::string_view line, std::uint32_t)>;

/// Hands each line that is not blank, trimmed, and its number, from 1, to `take`.
/// Errors: malformed, where `take` objects ("bad feature 'x' (FILE line 7)") or the file is empty.
troupe::result<void> read_lines(const std::string& path, const line_taker& take);

std::string_view trim(std::string_view text);
/// A decimal number that fills `text` and fits in f32; a leading + is allowed.
bool parse_number(std::string_view text, double& number);
/// "bad feature 'x' (FILE line 7)".
troupe::failure bad_line(const std::string& what, const std::string& path, std::uint32_t line);

/// Labels of a file, each with its line.
struct label_column {
  std::string path;
  std::vector<std::string> labels;
  std::vector<std::uint32_t> lines;
};

struct numbered_labels {
  std::uint32_t classes = 0;
  std::vector<std::uint32_t> train;
  std::vector<std::uint32_t> test;
};

/// Classes are the labels of the training file: numbers in their order, else names in theirs.
/// Errors: malformed, where there are fewer than 2 or more than 1000, or `test` has another one.
troupe::result<numbered_labels> number_labels(const label_column& train, const label_column& test);

} // namespace async_sgd
