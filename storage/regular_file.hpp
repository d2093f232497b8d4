// Tells files, which every process can read from their start, from pipes, devices and directories.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace troupe::storage {

/// Names the kind of `path` if it is not a regular file: "a pipe", "a directory", "a socket", "a
/// device", or "an open file of one process" (/dev/stdin, /dev/fd/N, also behind symbolic links).
/// Returns nullopt for a regular file, and for an absent path, which open() reports better.
std::optional<std::string> other_than_file(const std::filesystem::path& path);

} // namespace troupe::storage
