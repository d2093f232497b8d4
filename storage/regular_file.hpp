// Tells files, which every process can read from their start, from pipes, devices, directories and
// pointers.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::storage {

/// Names the kind of `path` if it is not a regular file: "a pipe", "a directory", "a socket", "a
/// device", or "an open file of one process" (/dev/stdin, /dev/fd/N, also behind symbolic links).
/// Returns nullopt for a regular file, and for an absent path, which open() reports better.
std::optional<std::string> other_than_file(const std::filesystem::path& path);

/// Recognises a small text that stands in place of a large file, by the bytes of the file. Returns
/// "a git-lfs pointer, not the file itself: fetch that with git lfs pull", or nullopt.
std::optional<std::string> pointer_to_file(std::string_view bytes);

} // namespace troupe::storage
