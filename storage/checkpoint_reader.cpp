#include "storage/checkpoint_reader.hpp"

#include "storage/detail/image_reader.hpp"
#include "storage/detail/paths.hpp"
#include "storage/manifest.hpp"

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

/// Opens one chain's part of a checkpoint. Errors: io_failed, damaged.
result<void> open(detail::image_reader& reader, const fs::path& directory, const manifest& whole,
                  const checkpoint_part& part) {
  const auto home = detail::checkpoint_path(directory, whole.checkpoint);
  for (const auto& file : part.files) {
    std::error_code error;
    if (fs::file_size(home / file.name, error) != file.size_bytes || error)
      return reader.damaged("file " + file.name + " is missing or has another size");
  }
  const auto complete = reader.open();
  if (!complete)
    return complete.error();
  if (complete->checkpoint != whole.checkpoint || complete->shard != part.shard)
    return reader.damaged("the cut in " + detail::part_name(part.shard) + " is another one");
  return {};
}

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
  // The pool keeps no memory: no block returns to it before the caller is done.
  buffer_pool pool{0};
  std::map<partition_id, partition_image> images;
  const auto expected = detail::expected_blocks(job, partitions);
  const auto home = detail::checkpoint_path(directory, checkpoint);
  const auto title = detail::title(directory, checkpoint);
  for (const auto& part : whole->parts) {
    detail::image_reader reader{home / detail::part_name(part.shard), title, job};
    if (auto opened = open(reader, directory, *whole, part); !opened)
      return opened.error();
    for (const auto& [partition, blocks] : expected) {
      auto image = reader.read(partition, blocks, pool);
      if (!image)
        return image.error();
      if (*image && !images.emplace(partition, **std::move(image)).second)
        return {errc::damaged, title + " is damaged: partition " + std::to_string(partition.value)
                                 + " is in two parts of it"};
    }
  }
  std::vector<partition_image> ordered;
  for (const auto partition : partitions) {
    const auto found = images.find(partition);
    if (found == images.end())
      return {errc::damaged, title + " is damaged: partition " + std::to_string(partition.value)
                               + " is in no part of it"};
    ordered.push_back(found->second); // Copies handles only.
  }
  return ordered;
}

} // namespace troupe::storage
