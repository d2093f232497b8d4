#include "storage/checkpoint_reader.hpp"

#include "serialization/layout.hpp"
#include "storage/detail/database.hpp"
#include "storage/detail/paths.hpp"
#include "storage/detail/records.hpp"
#include "storage/manifest.hpp"

#include "rocksdb/db.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace troupe::storage {

namespace fs = std::filesystem;

namespace {

/// Blocks of the job's layout in each of the partitions asked for, by table and block.
using block_list = std::vector<std::pair<table_id, std::uint64_t>>;

std::map<partition_id, block_list> expected_blocks(const job_spec& job,
                                                   const std::vector<partition_id>& partitions) {
  std::map<partition_id, block_list> expected;
  for (const auto partition : partitions)
    expected[partition];
  for (table_id table; table.value < job.tables.size(); ++table.value) {
    const auto blocks = block_count(job.tables[table.value]);
    for (std::uint64_t block = 0; block < blocks; ++block)
      if (const auto found = expected.find(partition_of(job, table, block));
          found != expected.end())
        found->second.emplace_back(table, block);
  }
  return expected;
}

rocksdb::ReadOptions read_options() {
  rocksdb::ReadOptions options;
  options.verify_checksums = true;
  options.fill_cache = false;
  return options;
}

/// One chain's part of a checkpoint, open for reading.
class part_reader {
public:
  part_reader(const fs::path& directory, const manifest& whole, const job_spec& job)
      : directory_(directory), whole_(whole), job_(job) {}

  result<void> open(const checkpoint_part& part) {
    folder_ = detail::part_name(part.chain);
    const auto home = detail::checkpoint_path(directory_, whole_.checkpoint);
    for (const auto& file : part.files) {
      std::error_code error;
      if (fs::file_size(home / file.name, error) != file.size_bytes || error)
        return damaged("file " + file.name + " is missing or has another size");
    }
    rocksdb::DB* opened = nullptr;
    const auto status =
      rocksdb::DB::OpenForReadOnly(detail::small_database(), (home / folder_).string(), &opened);
    database_.reset(opened);
    if (!status.ok())
      return failed(status);
    const auto value = get(detail::complete_key());
    if (!value)
      return value.error();
    const auto complete =
      *value ? detail::decode_complete(detail::complete_key(), **value) : std::nullopt;
    if (!complete || complete->checkpoint != whole_.checkpoint || complete->chain != part.chain)
      return damaged("the cut in " + folder_ + " is not complete, or another one");
    return {};
  }

  /// Nothing where another part has this partition.
  result<std::optional<partition_image>> read(partition_id partition, const block_list& expected,
                                              buffer_pool& pool) {
    const auto key = detail::meta_key(partition);
    const auto value = get(key);
    if (!value)
      return value.error();
    if (!*value)
      return std::optional<partition_image>{};
    auto meta = detail::decode_meta(key, **value);
    if (!meta || meta->image.marks.size() != job_.tables.size())
      return damaged("the marks of partition " + std::to_string(partition.value) + " are wrong");
    meta->image.partition = partition;
    if (auto blocks = read_blocks(meta->image, expected, pool); !blocks)
      return blocks.error();
    if (auto slabs = read_slabs(meta->image, meta->slabs, pool); !slabs)
      return slabs.error();
    return std::optional{std::move(meta->image)};
  }

private:
  result<void> read_blocks(partition_image& image, const block_list& expected, buffer_pool& pool) {
    const auto prefix = detail::block_prefix(image.partition);
    const std::unique_ptr<rocksdb::Iterator> at{database_->NewIterator(read_options())};
    at->Seek(prefix);
    for (const auto& [table, block] : expected) {
      const auto key = detail::block_key(image.partition, table, block);
      if (!at->Valid() && !at->status().ok())
        return failed(at->status());
      if (!at->Valid() || at->key() != rocksdb::Slice{key})
        return damaged(name_of(table, block) + " is missing");
      auto found = detail::decode_block(key, at->value().ToStringView(), pool);
      if (!found)
        return damaged("the checksum of " + name_of(table, block) + " is wrong");
      if (found->count != block_range(job_, table, block).count
          || found->state_count % found->count != 0)
        return damaged(name_of(table, block) + " has " + std::to_string(found->count) + " values");
      image.blocks.push_back(*std::move(found));
      at->Next();
    }
    if (!at->status().ok())
      return failed(at->status());
    if (at->Valid() && at->key().starts_with(prefix))
      return damaged("partition " + std::to_string(image.partition.value)
                     + " has more blocks than the job's layout");
    return {};
  }

  result<void> read_slabs(partition_image& image, std::uint64_t expected, buffer_pool& pool) {
    const auto prefix = detail::slab_prefix(image.partition);
    const std::unique_ptr<rocksdb::Iterator> at{database_->NewIterator(read_options())};
    for (at->Seek(prefix); at->Valid() && at->key().starts_with(prefix); at->Next()) {
      auto found = detail::decode_slab(at->key().ToStringView(), at->value().ToStringView(), pool);
      if (!found)
        return damaged("the checksum of rows in partition " + std::to_string(image.partition.value)
                       + " is wrong");
      if (auto fits = check_slab(image, *found); !fits)
        return fits;
      image.slabs.push_back(*std::move(found));
    }
    if (!at->status().ok())
      return failed(at->status());
    if (image.slabs.size() != expected)
      return damaged("partition " + std::to_string(image.partition.value) + " has "
                     + std::to_string(image.slabs.size()) + " slabs of rows, not "
                     + std::to_string(expected));
    return {};
  }

  /// Whether it may follow those that the image has.
  result<void> check_slab(const partition_image& image, const slab_image& next) const {
    if (next.table.value >= job_.tables.size() || !job_.tables[next.table.value].is_sparse())
      return damaged("there are rows of table " + std::to_string(next.table.value)
                     + ", which is not sparse");
    const auto& table = job_.tables[next.table.value];
    const auto* before =
      image.slabs.empty() || image.slabs.back().table != next.table ? nullptr : &image.slabs.back();
    const auto position = before == nullptr ? 0 : before->slab + 1;
    if (next.slab != position || (before != nullptr && before->count != slab_rows(table)))
      return damaged("slab " + std::to_string(position) + " of table '" + table.name
                     + "' is missing or not full");
    if (next.count == 0 || next.count > slab_rows(table) || next.row_floats < table.width)
      return damaged("slab " + std::to_string(next.slab) + " of table '" + table.name + "' has "
                     + std::to_string(next.count) + " rows of " + std::to_string(next.row_floats));
    return {};
  }

  /// Nothing where the key is absent.
  result<std::optional<std::string>> get(const std::string& key) {
    std::string value;
    const auto status = database_->Get(read_options(), key, &value);
    if (status.IsNotFound())
      return std::optional<std::string>{};
    if (!status.ok())
      return failed(status);
    return std::optional<std::string>{std::move(value)};
  }

  std::string name_of(table_id table, std::uint64_t block) const {
    return "block " + std::to_string(block) + " of table '" + job_.tables[table.value].name + "'";
  }

  failure failed(const rocksdb::Status& status) const {
    if (!status.IsIOError())
      return damaged(folder_ + ": " + status.ToString());
    return detail::database_failure(
      "read", detail::checkpoint_path(directory_, whole_.checkpoint) / folder_, status);
  }

  failure damaged(const std::string& why) const {
    return {errc::damaged, detail::title(directory_, whole_.checkpoint) + " is damaged: " + why};
  }

  const fs::path& directory_;
  const manifest& whole_;
  const job_spec& job_;
  std::string folder_;
  std::unique_ptr<rocksdb::DB> database_;
};

result<manifest> load_for(const fs::path& directory, std::uint64_t checkpoint,
                          const job_spec& job) {
  auto whole = load_manifest(directory, checkpoint);
  if (!whole)
    return whole;
  if (auto fits = check_job(directory, *whole, job); !fits)
    return fits.error();
  return whole;
}

} // namespace

result<std::vector<partition_image>> read(const fs::path& directory, std::uint64_t checkpoint,
                                          const job_spec& job,
                                          const std::vector<partition_id>& partitions) {
  const auto whole = load_for(directory, checkpoint, job);
  if (!whole)
    return whole.error();
  // Nothing is given back to it before the caller is done with the blocks, so it keeps nothing.
  buffer_pool pool{0};
  std::map<partition_id, partition_image> images;
  const auto expected = expected_blocks(job, partitions);
  for (const auto& part : whole->parts) {
    part_reader reader{directory, *whole, job};
    if (auto opened = reader.open(part); !opened)
      return opened.error();
    for (const auto& [partition, blocks] : expected) {
      auto image = reader.read(partition, blocks, pool);
      if (!image)
        return image.error();
      if (*image && !images.emplace(partition, **std::move(image)).second)
        return {errc::damaged, detail::title(directory, checkpoint) + " is damaged: partition "
                                 + std::to_string(partition.value) + " is in two parts of it"};
    }
  }
  std::vector<partition_image> ordered;
  for (const auto partition : partitions) {
    const auto found = images.find(partition);
    if (found == images.end())
      return {errc::damaged, detail::title(directory, checkpoint) + " is damaged: partition "
                               + std::to_string(partition.value) + " is in no part of it"};
    ordered.push_back(found->second); // Copies handles only.
  }
  return ordered;
}

} // namespace troupe::storage
