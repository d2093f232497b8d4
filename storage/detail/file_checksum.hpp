// Gives RocksDB Troupe's CRC-32C for whole files. RocksDB's own has no hardware version in Debian's
// build, and would cost more than all other work of a flush.
#pragma once

#include "rocksdb/file_checksum.h"

#include <cstdint>
#include <memory>
#include <string>

namespace troupe::storage::detail {

std::shared_ptr<rocksdb::FileChecksumGenFactory> make_file_checksums();

/// Returns the checksum that RocksDB keeps of a file.
std::uint32_t file_checksum_value(const std::string& kept);

} // namespace troupe::storage::detail
