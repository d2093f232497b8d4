// Accesses files through plain system calls. Unlike the standard library it syncs, replaces files
// atomically, and gives the reason of a failure.
#pragma once

#include "base/error.hpp"
#include "base/system/descriptor.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace troupe {

/// Creates an empty file to write to; replaces a file of that name. Errors: io_failed.
result<descriptor> create_file(const std::filesystem::path& path);
/// Errors: io_failed.
result<descriptor> open_to_read(const std::filesystem::path& path);
/// Returns the number of bytes read, less than asked for only at the end. Errors: io_failed.
result<std::size_t> read_some(const descriptor& file, std::span<std::byte> into,
                              const std::filesystem::path& path);
/// Errors: io_failed.
result<void> write_all(const descriptor& file, std::span<const std::byte> bytes,
                       const std::filesystem::path& path);
/// Writes all bytes. Returns 0, or the system's number of the error.
int write_bytes(const descriptor& file, std::span<const std::byte> bytes);
/// Syncs the file. Returns 0, or the system's number of the error. Requires: no call has failed.
int sync_bytes(const descriptor& file);

/// Size and checksum of a file's bytes.
struct file_sum {
  std::uint64_t size_bytes = 0;
  std::uint32_t crc32c = 0;

  bool operator==(const file_sum&) const = default;
};

/// Returns io_failed, "cannot <action> <path>: <reason of `error`>".
failure io_failure(std::string_view action, const std::filesystem::path& path, int error);
failure io_failure(std::string_view action, const std::filesystem::path& path,
                   const std::error_code& error);

/// Returns the content of a file of at most `size_bytes_max`. Errors: io_failed.
result<std::string> read_file(const std::filesystem::path& path, std::size_t size_bytes_max);

/// Returns the content of a file. Errors: io_failed.
result<std::string> read_file(const std::filesystem::path& path);

/// Replaces `path` atomically: temporary name, fsync, rename, fsync of the directory. On error the
/// old content, if any, remains. For Troupe's own files; output_file.hpp writes those that a user
/// names. Errors: io_failed.
result<void> replace_file(const std::filesystem::path& path, std::string_view content);

/// Copies to a new file and syncs it; returns the sum of the bytes read. Errors: io_failed.
result<file_sum> copy_file(const std::filesystem::path& from, const std::filesystem::path& to);

/// Returns the sum of a file's bytes. `from_disk` asks the kernel to drop its cached copy first, so
/// that the disk's content is checked. The file must have been synced. Errors: io_failed.
result<file_sum> sum_file(const std::filesystem::path& path, bool from_disk);

/// Makes names in `directory` durable. Errors: io_failed.
result<void> sync_directory(const std::filesystem::path& directory);

/// Makes a directory and its parents; no error if it exists. Errors: io_failed.
result<void> make_directory(const std::filesystem::path& directory);

/// Removes a directory and its content; no error if it is absent. Errors: io_failed.
result<void> remove_tree(const std::filesystem::path& directory);

} // namespace troupe
