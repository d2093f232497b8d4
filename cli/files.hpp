// Files that nobody sees half-written, and that survive a loss of power.
#pragma once

#include "serialization/error.hpp"

#include <sys/types.h>

#include <filesystem>
#include <string>

namespace troupe {

/// Replaces what is there: a reader finds the old text or the new one, whole. Until then it lies
/// beside `path` under a name of its own, mode 0600. Errors: io_failed.
result<void> write_file(const std::filesystem::path& path, const std::string& text, mode_t mode);

/// Errors: io_failed.
result<std::string> read_file(const std::filesystem::path& path);

} // namespace troupe
