#include "storage/detail/database.hpp"

#include "storage/detail/file_checksum.hpp"

#include "rocksdb/env.h"
#include "rocksdb/table.h"

#include <cstdarg>
#include <memory>
#include <string>

namespace troupe::storage::detail {

namespace {

/// Drops RocksDB's log. Its own logger would put LOG files beside the data, also into checkpoints.
class silent_logger : public rocksdb::Logger {
public:
  silent_logger() : Logger(rocksdb::InfoLogLevel::HEADER_LEVEL) {}
  using Logger::Logv;
  void Logv(const char*, va_list) override {}
};

} // namespace

rocksdb::Options small_database() {
  rocksdb::BlockBasedTableOptions table;
  table.no_block_cache = true; // Blocks are about 1 MiB and read once.
  table.checksum = rocksdb::kXXH3;

  rocksdb::Options options;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  options.info_log = std::make_shared<silent_logger>();
  options.compression = rocksdb::kNoCompression;     // Weights hardly compress.
  options.write_buffer_size = std::size_t{16} << 20; // One flush writes while the next buffer
                                                     // fills.
  options.max_write_buffer_number = 2;
  options.max_open_files = 64;
  options.max_background_jobs = 2;
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  options.avoid_flush_during_shutdown = true;
  options.paranoid_checks = true;
  options.verify_sst_unique_id_in_manifest = true;
  options.file_checksum_gen_factory = make_file_checksums();
  return options;
}

failure database_failure(std::string_view action, const std::filesystem::path& path,
                         const rocksdb::Status& status) {
  const auto code = status.IsCorruption() ? errc::damaged : errc::io_failed;
  return {code, "cannot " + std::string{action} + " " + path.string() + ": " + status.ToString()};
}

} // namespace troupe::storage::detail
