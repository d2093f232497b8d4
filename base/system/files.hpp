// Files that nobody sees half-written, and that survive a loss of power.
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

/// Replaces what is there, one after the other: a reader of a file finds its old text or its new
/// one, whole. All lie beside their paths, under names of their own and with mode 0600 until they
/// are whole, before the first is put in place: an error until then changes nothing.
/// Errors: io_failed.
result<void> write_files(const std::vector<file_text>& files);

/// Errors: io_failed.
result<std::string> read_file(const std::filesystem::path& path);

} // namespace troupe
