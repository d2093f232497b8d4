// Gives RocksDB our CRC-32C for whole files: its own has no hardware version in Debian's build and
// would cost more than everything else a flush does.
#pragma once

#include "rocksdb/file_checksum.h"

#include <cstdint>
#include <memory>
#include <string>

namespace troupe::storage::detail {

std::shared_ptr<rocksdb::FileChecksumGenFactory> make_file_checksums();

/// The number in what RocksDB keeps of a file's checksum.
std::uint32_t file_checksum_value(const std::string& kept);

} // namespace troupe::storage::detail
