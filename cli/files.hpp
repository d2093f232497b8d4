// Files that nobody sees half-written.
#pragma once

#include "serialization/error.hpp"

#include <sys/types.h>

#include <filesystem>
#include <string>

namespace troupe {

/// Replaces what is there; a reader finds the old text or the new one, and `mode` holds from the
/// first byte on. Errors: io_failed.
result<void> write_file(const std::filesystem::path& path, const std::string& text, mode_t mode);

/// Errors: io_failed.
result<std::string> read_file(const std::filesystem::path& path);

} // namespace troupe
