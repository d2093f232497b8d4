#include "storage/detail/image_reader.hpp"

#include "base/system/resource_limits.hpp"
#include "serialization/layout.hpp"
#include "storage/detail/database.hpp"

namespace troupe::storage::detail {

namespace fs = std::filesystem;

namespace {

rocksdb::ReadOptions read_options() {
  rocksdb::ReadOptions options;
  options.verify_checksums = true;
  options.fill_cache = false;
  return options;
}

} // namespace

std::map<partition_id, block_list> expected_blocks(const job_spec& job,
                                                   const std::vector<partition_id>& partitions) {
  std::map<partition_id, block_list> expected;
  for (const auto partition : partitions)
    if (auto& blocks = expected[partition]; job.own_store)
      blocks.emplace_back(table_id{0}, 0);
  if (job.own_store)
    return expected;
  for (table_id table; table.value < job.tables.size(); ++table.value) {
    const auto blocks = block_count(job.tables[table.value]);
    for (std::uint64_t block = 0; block < blocks; ++block)
      if (const auto found = expected.find(partition_of(job, table, block));
          found != expected.end())
        found->second.emplace_back(table, block);
  }
  return expected;
}

image_reader::image_reader(const fs::path& folder, std::string title, const job_spec& job)
    : folder_(folder), title_(std::move(title)), job_(job) {}

image_reader::~image_reader() = default;

result<cut_complete> image_reader::open() {
  rocksdb::DB* opened = nullptr;
  const auto status = without_unwinding(
    [&] { return rocksdb::DB::OpenForReadOnly(small_database(), folder_.string(), &opened); });
  database_.reset(opened);
  if (!status.ok())
    return failed(status);
  const auto value = get(complete_key());
  if (!value)
    return value.error();
  const auto complete = *value ? decode_complete(complete_key(), **value) : std::nullopt;
  if (!complete)
    return damaged("the cut in " + folder_.filename().string() + " is not complete");
  return *complete;
}

result<std::optional<partition_image>>
image_reader::read(partition_id partition, const block_list& expected, buffer_pool& pool) {
  const auto key = meta_key(partition);
  const auto value = get(key);
  if (!value)
    return value.error();
  if (!*value)
    return std::optional<partition_image>{};
  auto meta = decode_meta(key, **value);
  if (!meta || meta->image.applied.size() != job_.tables.size())
    return damaged("the applied batches of partition " + std::to_string(partition.value)
                   + " are wrong");
  meta->image.partition = partition;
  if (auto blocks = read_blocks(meta->image, expected, pool); !blocks)
    return blocks.error();
  if (auto slabs = read_slabs(meta->image, meta->slabs, pool); !slabs)
    return slabs.error();
  return std::optional{std::move(meta->image)};
}

result<void> image_reader::read_blocks(partition_image& image, const block_list& expected,
                                       buffer_pool& pool) {
  const auto prefix = block_prefix(image.partition);
  const std::unique_ptr<rocksdb::Iterator> at{database_->NewIterator(read_options())};
  at->Seek(prefix);
  for (const auto& [table, block] : expected) {
    const auto key = block_key(image.partition, table, block);
    if (!at->Valid() && !at->status().ok())
      return failed(at->status());
    if (!at->Valid() || at->key() != rocksdb::Slice{key})
      return damaged(name_of(table, block) + " is missing");
    auto found = decode_block(key, at->value().ToStringView(), pool);
    if (!found)
      return damaged("the checksum of " + name_of(table, block) + " is wrong");
    if (!has_right_size(*found))
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

bool image_reader::has_right_size(const block_image& found) const {
  if (job_.own_store)
    return found.state_count == 0 && found.count == (found.steps + 3) / sizeof(float);
  return found.count == block_range(job_, found.table, found.block).count
         && found.state_count % found.count == 0;
}

result<void> image_reader::read_slabs(partition_image& image, std::uint64_t expected,
                                      buffer_pool& pool) {
  const auto prefix = slab_prefix(image.partition);
  const std::unique_ptr<rocksdb::Iterator> at{database_->NewIterator(read_options())};
  for (at->Seek(prefix); at->Valid() && at->key().starts_with(prefix); at->Next()) {
    auto found = decode_slab(at->key().ToStringView(), at->value().ToStringView(), pool);
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

/// Checks that the slab may follow those of the image.
result<void> image_reader::check_slab(const partition_image& image, const slab_image& next) const {
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

/// Returns nullopt if the key is absent.
result<std::optional<std::string>> image_reader::get(const std::string& key) {
  std::string value;
  const auto status = database_->Get(read_options(), key, &value);
  if (status.IsNotFound())
    return std::optional<std::string>{};
  if (!status.ok())
    return failed(status);
  return std::optional<std::string>{std::move(value)};
}

std::string image_reader::name_of(table_id table, std::uint64_t block) const {
  return "block " + std::to_string(block) + " of table '" + job_.tables[table.value].name + "'";
}

failure image_reader::failed(const rocksdb::Status& status) const {
  if (!status.IsIOError())
    return damaged(folder_.filename().string() + ": " + status.ToString());
  return database_failure("read", folder_, status);
}

failure image_reader::damaged(const std::string& why) const {
  return {errc::damaged, title_ + " is damaged: " + why};
}

} // namespace troupe::storage::detail
