// Reads partitions out of a RocksDB that a checkpoint_writer wrote.
#pragma once

#include "base/error.hpp"
#include "serialization/job.hpp"
#include "storage/detail/records.hpp"

#include "rocksdb/db.h"

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::storage::detail {

/// Blocks of the job's layout, by table and block.
using block_list = std::vector<std::pair<table_id, std::uint64_t>>;

/// Returns the blocks in each of the partitions.
std::map<partition_id, block_list> expected_blocks(const job_spec& job,
                                                   const std::vector<partition_id>& partitions);

/// Reads images and checks them against the job's layout. The folder is not changed.
class image_reader {
public:
  /// `title`: the name for people, "checkpoint 12 in DIR". `job` must outlive the reader.
  image_reader(const std::filesystem::path& folder, std::string title, const job_spec& job);
  ~image_reader();

  /// Returns the summary of the last cut there. Errors: io_failed, damaged.
  result<cut_complete> open();
  /// Returns nullopt if the partition is absent. Errors: io_failed, damaged.
  result<std::optional<partition_image>> read(partition_id partition, const block_list& expected,
                                              buffer_pool& pool);
  failure damaged(const std::string& why) const;

private:
  result<void> read_blocks(partition_image& image, const block_list& expected, buffer_pool& pool);
  bool has_right_size(const block_image& found) const;
  result<void> read_slabs(partition_image& image, std::uint64_t expected, buffer_pool& pool);
  result<void> check_slab(const partition_image& image, const slab_image& next) const;
  result<std::optional<std::string>> get(const std::string& key);
  std::string name_of(table_id table, std::uint64_t block) const;
  failure failed(const rocksdb::Status& status) const;

  std::filesystem::path folder_;
  std::string title_;
  const job_spec& job_;
  std::unique_ptr<rocksdb::DB> database_;
};

} // namespace troupe::storage::detail
