// What all RocksDB databases of Troupe have in common: small, quiet, few threads.
#pragma once

#include "base/error.hpp"

#include "rocksdb/options.h"
#include "rocksdb/status.h"

#include <filesystem>
#include <string_view>

namespace troupe::storage::detail {

/// Options to start from: no log files, no statistics, no block cache, one thread for flushes and
/// one for compactions, file checksums on.
rocksdb::Options small_database();

/// io_failed, or damaged where RocksDB found corruption: "cannot <action> <path>: <status>".
failure database_failure(std::string_view action, const std::filesystem::path& path,
                         const rocksdb::Status& status);

} // namespace troupe::storage::detail
