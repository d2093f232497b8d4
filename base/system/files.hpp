// Replaces files atomically, so that they survive a loss of power and are never half-written.
#pragma once

#include "base/error.hpp"

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace troupe {

struct file_text {
  std::filesystem::path path;
  std::string text;
  mode_t mode;
};

/// Replaces the files one after the other; a reader finds a file's whole old or new text. First all
/// are written beside their paths under temporary names, with mode 0600 until they are whole. So an
/// error before the first replacement leaves all old files. Errors: io_failed.
result<void> write_files(const std::vector<file_text>& files);

/// Returns the content of a file. Errors: io_failed.
result<std::string> read_file(const std::filesystem::path& path);

} // namespace troupe
