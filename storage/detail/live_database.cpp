#include "storage/detail/live_database.hpp"

#include "base/system/file.hpp"
#include "base/system/resource_limits.hpp"
#include "storage/detail/database.hpp"
#include "storage/detail/file_checksum.hpp"
#include "storage/detail/records.hpp"
#include "storage/detail/unsynced_files.hpp"

#include "rocksdb/utilities/checkpoint.h"
#include "rocksdb/write_batch.h"

#include <algorithm>
#include <array>
#include <utility>

namespace troupe::storage::detail {

namespace fs = std::filesystem;

namespace {

/// Bytes of one write: large enough to make its fixed costs negligible.
constexpr std::size_t batch_bytes = std::size_t{1} << 20;

rocksdb::Options live_options(rocksdb::Env* environment) {
  auto options = small_database();
  options.env = environment;
  options.create_if_missing = true;
  options.error_if_exists = true;
  // Starting anew from memory reclaims space; merging tables by reading them back is useless.
  options.disable_auto_compactions = true;
  options.level0_slowdown_writes_trigger = 1 << 20;
  options.level0_stop_writes_trigger = 1 << 20;
  options.soft_pending_compaction_bytes_limit = 0;
  options.hard_pending_compaction_bytes_limit = 0;
  return options;
}

rocksdb::WriteOptions write_options() {
  rocksdb::WriteOptions options;
  options.disableWAL = true; // A cut is flushed as a whole.
  options.protection_bytes_per_key = 8;
  return options;
}

/// A block or a slab, as this database sees it.
struct stored_image {
  std::string key;
  std::uint64_t version = 0;
  float_ptr values;
  float_ptr state;
  std::uint64_t size_bytes = 0;
};

stored_image seen(partition_id partition, const block_image& image) {
  return {block_key(partition, image.table, image.block), image.version, image.values, image.state,
          (image.count + image.state_count) * sizeof(float)};
}

stored_image seen(partition_id partition, const slab_image& image) {
  return {slab_key(partition, image.table, image.slab), image.version, image.rows, nullptr,
          image.count * (image.row_floats * sizeof(float) + sizeof(std::uint64_t))};
}

stored_value encoded(std::string_view key, const block_image& image) {
  return encode_block(key, image);
}
stored_value encoded(std::string_view key, const slab_image& image) {
  return encode_slab(key, image);
}

template <class Visit>
void for_each_image(const cut& what, Visit visit) {
  for (const auto& partition : what.partitions) {
    for (const auto& image : partition.blocks)
      visit(seen(partition.partition, image), image);
    for (const auto& image : partition.slabs)
      visit(seen(partition.partition, image), image);
  }
}

bool same_owner(const std::weak_ptr<const float>& known, const float_ptr& now) {
  return !known.owner_before(now) && !now.owner_before(known);
}

/// Collects writes and hands them over in batches of about batch_bytes.
class batch_writer {
public:
  explicit batch_writer(rocksdb::DB& database)
      : database_(database), options_(write_options()),
        batch_(0, 0, options_.protection_bytes_per_key, 0) {}

  rocksdb::Status put(const std::string& key, const stored_value& what) {
    const std::array<rocksdb::Slice, 1> keys{key};
    const auto slice = [](std::string_view part) {
      return rocksdb::Slice{part.data(), part.size()};
    };
    const std::array<rocksdb::Slice, 4> values{what.header, slice(what.rest[0]),
                                               slice(what.rest[1]), slice(what.rest[2])};
    auto status = batch_.Put(rocksdb::SliceParts{keys.data(), keys.size()},
                             rocksdb::SliceParts{values.data(), values.size()});
    return status.ok() && batch_.GetDataSize() >= batch_bytes ? finish() : status;
  }

  rocksdb::WriteBatch& batch() { return batch_; }

  rocksdb::Status finish() {
    if (batch_.Count() == 0)
      return rocksdb::Status::OK();
    auto status = database_.Write(options_, &batch_);
    batch_.Clear();
    return status;
  }

private:
  rocksdb::DB& database_;
  rocksdb::WriteOptions options_;
  rocksdb::WriteBatch batch_;
};

} // namespace

live_database::live_database(fs::path directory)
    : directory_(std::move(directory)), environment_(make_unsynced_environment()) {}

live_database::~live_database() = default;

result<void> live_database::open() {
  if (database_)
    return {};
  if (auto removed = remove_tree(directory_); !removed)
    return removed;
  rocksdb::DB* opened = nullptr;
  const auto status =
    without_unwinding([&opened, used = environment_, where = directory_.string()] {
      return rocksdb::DB::Open(live_options(used.get()), where, &opened);
    });
  database_.reset(opened);
  if (!status.ok())
    return database_failure("open", directory_, status);
  return {};
}

void live_database::discard() {
  database_.reset();
  known_.clear();
  partitions_.clear();
  // The next open() reports files that cannot be removed now.
  (void)remove_tree(directory_);
}

bool live_database::is_clean(const std::string& key, std::uint64_t version, const float_ptr& values,
                             const float_ptr& state) const {
  const auto found = known_.find(key);
  return found != known_.end() && found->second.version == version
         && found->second.first_value == values.get() && same_owner(found->second.values, values)
         && same_owner(found->second.state, state);
}

bool live_database::starting_anew_is_cheaper(const cut& what) const {
  if (!database_)
    return true;
  std::uint64_t total = 0;
  std::uint64_t dirty = 0;
  for_each_image(what, [&](const stored_image& x, const auto&) {
    total += x.size_bytes;
    if (!is_clean(x.key, x.version, x.values, x.state))
      dirty += x.size_bytes;
  });
  std::vector<rocksdb::LiveFileMetaData> files;
  database_->GetLiveFilesMetaData(&files);
  std::uint64_t stored = 0;
  for (const auto& file : files)
    stored += file.size;
  // Starting anew writes and copies all data. Otherwise the dirty blocks are written, and they and
  // all stored data are copied. Many small files are slow to read, whatever their size.
  constexpr std::size_t files_max = 200;
  return 2 * total < dirty + (stored + dirty) || files.size() > files_max;
}

result<void> live_database::store(const cut& what) {
  if (starting_anew_is_cheaper(what))
    discard();
  auto stored = [&]() -> result<void> {
    if (auto opened = open(); !opened)
      return opened;
    if (auto written = put_images(what); !written)
      return written;
    if (auto done = put_summary(what); !done)
      return done;
    if (const auto status = database_->Flush({}); !status.ok())
      return database_failure("flush", directory_, status);
    return {};
  }();
  // After a failed write RocksDB refuses all further ones.
  if (!stored)
    discard();
  return stored;
}

result<void> live_database::put_images(const cut& what) {
  ++cuts_;
  batch_writer writer{*database_};
  auto put = rocksdb::Status::OK();
  for_each_image(what, [&](const stored_image& x, const auto& image) {
    if (!put.ok())
      return;
    if (is_clean(x.key, x.version, x.values, x.state)) {
      known_[x.key].cut = cuts_;
      return;
    }
    put = writer.put(x.key, encoded(x.key, image));
    known_[x.key] = {x.version, x.values, x.state, x.values.get(), cuts_};
  });
  if (!put.ok())
    return database_failure("write", directory_, put);
  for (auto at = known_.begin(); at != known_.end();) {
    if (at->second.cut == cuts_) {
      ++at;
      continue;
    }
    if (const auto status = writer.batch().Delete(at->first); !status.ok())
      return database_failure("write", directory_, status);
    at = known_.erase(at);
  }
  if (const auto status = writer.finish(); !status.ok())
    return database_failure("write", directory_, status);
  return {};
}

result<void> live_database::put_summary(const cut& what) {
  batch_writer writer{*database_};
  auto& batch = writer.batch();
  auto status = rocksdb::Status::OK();
  const auto keep_first_error = [&status](const rocksdb::Status& next) {
    if (status.ok())
      status = next;
  };
  for (const auto partition : partitions_)
    keep_first_error(batch.Delete(meta_key(partition)));
  partitions_.clear();
  for (const auto& partition : what.partitions) {
    const auto key = meta_key(partition.partition);
    keep_first_error(batch.Put(key, encode_meta(key, partition)));
    partitions_.push_back(partition.partition);
  }
  const cut_complete complete{what.checkpoint, what.shard, what.partitions.size(), known_.size()};
  keep_first_error(batch.Put(complete_key(), encode_complete(complete_key(), complete)));
  keep_first_error(writer.finish());
  if (!status.ok())
    return database_failure("write", directory_, status);
  return {};
}

result<std::map<std::string, std::uint32_t>> live_database::link_to(const fs::path& target) {
  rocksdb::Checkpoint* made = nullptr;
  auto status = rocksdb::Checkpoint::Create(database_.get(), &made);
  const std::unique_ptr<rocksdb::Checkpoint> checkpoint{made};
  if (status.ok())
    status = checkpoint->CreateCheckpoint(target.string(), /* log_size_for_flush = */ 0);
  if (!status.ok()) {
    auto why = database_failure("take a checkpoint of", directory_, status);
    discard();
    return why;
  }
  std::vector<rocksdb::LiveFileMetaData> files;
  database_->GetLiveFilesMetaData(&files);
  std::map<std::string, std::uint32_t> sums;
  for (const auto& file : files)
    sums[file.relative_filename] = file_checksum_value(file.file_checksum);
  return sums;
}

} // namespace troupe::storage::detail
