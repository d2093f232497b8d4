// A replica's write-ahead log: entries in the order in which it was given them, before anyone hears
// that they are there.
#pragma once

#include "base/error.hpp"
#include "base/system/file.hpp"
#include "serialization/replication.hpp"

#include <cstdint>
#include <filesystem>
#include <vector>

namespace troupe::storage {

/// A file that only grows. What append() has returned for survives the end of the process; the
/// kernel writes it to the disk within seconds, so a power cut may take the last of it.
class write_ahead_log {
public:
  /// Begins an empty file; one of that name is replaced. Errors: io_failed.
  static result<write_ahead_log> create(std::filesystem::path path);

  /// `index`: larger than that of the last entry. Nothing may be written after an error: the entry
  /// may be there in part. Errors: io_failed (a full disk, say).
  result<void> append(std::uint64_t index, const log_entry& what);
  /// Takes back the entries beyond `last`. Errors: io_failed.
  result<void> truncate(std::uint64_t last);

private:
  write_ahead_log(std::filesystem::path path, detail::descriptor file)
      : path_(std::move(path)), file_(std::move(file)) {}

  std::filesystem::path path_;
  detail::descriptor file_;
};

/// All entries that were not taken back, in order, of logs that follow each other: what a later one
/// says of an index holds. A record that was not written to its end is left out, as nobody can have
/// heard of it. Errors: io_failed; damaged: another record is not what was written;
/// version_mismatch: a program of another protocol version wrote it.
result<std::vector<log_entry>> read_logs(const std::vector<std::filesystem::path>& paths);

} // namespace troupe::storage
