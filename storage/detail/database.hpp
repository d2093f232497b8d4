// Common settings of all RocksDB databases of Troupe: small, quiet, few threads.
#pragma once

#include "base/error.hpp"

#include "rocksdb/options.h"
#include "rocksdb/status.h"

#include <filesystem>
#include <string_view>

namespace troupe::storage::detail {

/// Returns options to start from: no log files, no statistics, no block cache, one thread for
/// flushes and one for compactions, file checksums on.
rocksdb::Options small_database();

/// Returns io_failed, or damaged for corruption: "cannot <action> <path>: <status>".
failure database_failure(std::string_view action, const std::filesystem::path& path,
                         const rocksdb::Status& status);

} // namespace troupe::storage::detail
