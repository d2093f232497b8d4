// Writes files that a user names. A link is followed. A regular file is replaced as a whole and
// keeps its mode and its owner. A pipe, a character device and /dev/stdout are written through.
#pragma once

#include "base/error.hpp"
#include "base/system/descriptor.hpp"

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Time in which the reader of a pipe has to open it, and to take each part of the output.
constexpr std::chrono::milliseconds reader_patience{10'000};

/// Returns whether `path` is a pipe, a device or an open file of a process. No output replaces it.
bool is_written_through(const std::filesystem::path& path);

/// Checks whether `path` can be written to, without a change, and without a wait for a reader.
/// Errors: io_failed.
result<void> check_output(const std::filesystem::path& path);

struct output_text {
  std::filesystem::path path;
  std::string text;
  std::optional<mode_t> mode = {}; ///< Absent: the mode of the file that is replaced.
};

/// Writes the files one after the other. A reader finds a file's whole old or new text. First all
/// are written beside their paths under temporary names, so an error before the first replacement
/// leaves all old files. A file is written in place where a replacement would lose its owner or
/// another of its names, or where its folder takes no new file. Errors: io_failed.
result<void> write_outputs(const std::vector<output_text>& files,
                           std::chrono::milliseconds patience = reader_patience);

/// A file to which lines are appended. Thread safety: none.
class appended_file {
public:
  /// Waits for the reader of a pipe for `patience`. Errors: io_failed.
  static result<appended_file> open(const std::filesystem::path& path,
                                    std::chrono::milliseconds patience = reader_patience);

  /// Writes a line, which ends with a newline. Waits for no reader. Errors: io_failed; a part of
  /// the line may have been written, and the next line then begins a new one.
  result<void> write(std::string_view line);

private:
  appended_file(std::filesystem::path path, descriptor file)
      : path_(std::move(path)), file_(std::move(file)) {}

  std::filesystem::path path_;
  descriptor file_;
  bool line_is_cut_ = false;
};

} // namespace troupe
