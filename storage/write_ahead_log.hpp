// A replica's write-ahead log: entries in the order of their arrival, written before any process
// hears of them.
#pragma once

#include "base/error.hpp"
#include "base/system/file.hpp"
#include "serialization/replication.hpp"

#include <cstdint>
#include <filesystem>
#include <vector>

namespace troupe::storage {

/// A file that only grows. An appended entry survives the end of the process. The kernel writes it
/// to the disk within seconds, so a power cut may lose the last entries.
class write_ahead_log {
public:
  /// Creates an empty file; replaces a file of that name. Errors: io_failed.
  static result<write_ahead_log> create(std::filesystem::path path);

  /// Appends an entry. `index`: larger than that of the last entry. After an error do not write
  /// again: part of the entry may be in the file. Errors: io_failed (for example a full disk).
  result<void> append(std::uint64_t index, const log_entry& what);
  /// Removes the entries beyond `last`. Errors: io_failed.
  result<void> truncate(std::uint64_t last);

private:
  write_ahead_log(std::filesystem::path path, descriptor file)
      : path_(std::move(path)), file_(std::move(file)) {}

  std::filesystem::path path_;
  descriptor file_;
};

/// Reads consecutive logs and returns all entries that were not truncated, in order. For an index
/// that several logs have, the last one counts. An incomplete record at the end is left out: no
/// process can have heard of it. Errors: io_failed; damaged: another record is not as written;
/// version_mismatch: a program of another protocol version wrote it.
result<std::vector<log_entry>> read_logs(const std::vector<std::filesystem::path>& paths);

} // namespace troupe::storage
