// BASE: u32 crc32c of the rest, u64 sequence, u64 history, u64 generation, u32 format, u32 1 if the
// generation recovered, else 0; little-endian. Format 1 ends with the generation.
#include "storage/local_state.hpp"

#include "base/bytes.hpp"
#include "base/crc32c.hpp"
#include "storage/detail/image_reader.hpp"
#include "storage/detail/paths.hpp"

#include <algorithm>
#include <set>
#include <system_error>
#include <utility>

namespace troupe::storage {

namespace fs = std::filesystem;

namespace {

constexpr std::uint32_t base_format = 2;
constexpr std::size_t base_bytes = 36;

/// Numbers of the existing bases and logs.
struct kept_files {
  std::set<std::uint64_t> bases;
  std::set<std::uint64_t> logs;
};

/// Lists the bases and logs. Errors: io_failed.
result<kept_files> files_in(const fs::path& live) {
  kept_files all;
  std::error_code error;
  for (fs::directory_iterator at{live, error}, end; !error && at != end; at.increment(error))
    if (const auto number = detail::kept_sequence(at->path().filename().string()))
      (at->is_directory(error) ? all.bases : all.logs).insert(*number);
  if (error && error != std::errc::no_such_file_or_directory)
    return failure{errc::io_failed, "cannot list " + live.string() + ": " + error.message()};
  return all;
}

result<std::vector<partition_image>> read_base(const fs::path& folder, const base_id& base,
                                               const job_spec& job,
                                               const std::vector<partition_id>& partitions) {
  buffer_pool pool{0};
  detail::image_reader reader{folder, "the local state in " + folder.string(), job};
  if (const auto opened = reader.open(); !opened)
    return opened.error();
  std::vector<partition_image> images;
  for (const auto& [partition, blocks] : detail::expected_blocks(job, partitions)) {
    auto image = reader.read(partition, blocks, pool);
    if (!image)
      return image.error();
    if (!*image)
      return reader.damaged("base " + std::to_string(base.sequence) + " has not all partitions");
    images.push_back(**std::move(image));
  }
  return images;
}

result<local_state> read_from(const fs::path& live, std::uint64_t sequence,
                              const std::set<std::uint64_t>& logs, const job_spec& job,
                              const std::vector<partition_id>& partitions) {
  const auto folder = detail::base_path(live, sequence);
  const auto bytes = read_file(folder / detail::base_name, base_bytes);
  if (!bytes)
    return bytes.error();
  const auto base = decode_base(*bytes);
  const auto of_no_use = [&](errc code, const std::string& why) {
    return failure{code, "the local state in " + folder.string() + " " + why};
  };
  if (!base)
    return of_no_use(base.error().code, base.error().text);
  if (base->sequence != sequence)
    return of_no_use(errc::damaged, "is damaged");
  auto images = read_base(folder, *base, job, partitions);
  if (!images)
    return images.error();
  std::vector<fs::path> since;
  for (auto at = logs.lower_bound(sequence); at != logs.end(); ++at)
    since.push_back(detail::log_path(live, *at));
  auto log = read_logs(since);
  if (!log)
    return log.error();
  return local_state{*base, *std::move(images), *std::move(log)};
}

} // namespace

std::uint64_t newest_kept(const fs::path& directory, server_id server, shard_id shard) {
  const auto files = files_in(detail::live_path(directory, server, shard));
  const auto last = [](const auto& all) { return all.empty() ? 0 : *all.rbegin(); };
  return files ? std::max(last(files->bases), last(files->logs)) : 0;
}

result<write_ahead_log> begin_log(const fs::path& directory, server_id server, shard_id shard,
                                  std::uint64_t sequence) {
  const auto live = detail::live_path(directory, server, shard);
  if (auto made = make_directory(live); !made)
    return made.error();
  return write_ahead_log::create(detail::log_path(live, sequence));
}

result<std::optional<local_state>> read_kept(const fs::path& directory, server_id server,
                                             shard_id shard, const job_spec& job,
                                             const std::vector<partition_id>& partitions) {
  const auto live = detail::live_path(directory, server, shard);
  const auto files = files_in(live);
  if (!files)
    return files.error();
  const auto& [bases, logs] = *files;
  if (bases.empty())
    return std::optional<local_state>{};
  auto kept = read_from(live, *bases.rbegin(), logs, job, partitions);
  if (!kept || !kept->log.empty() || !goes_by_clocks(job) || bases.size() < 2)
    return kept ? result<std::optional<local_state>>{*std::move(kept)} : kept.error();
  auto earlier = read_from(live, *std::next(bases.rbegin()), logs, job, partitions);
  if (earlier && earlier->base.history == kept->base.history)
    return std::optional{
      local_state{kept->base, std::move(earlier->images), std::move(earlier->log)}};
  return std::optional{*std::move(kept)};
}

std::string encode(const base_id& what) {
  const auto body = detail::byte_writer{}
                      .little(what.sequence)
                      .little(what.history.value)
                      .little(what.generation.value)
                      .little(base_format)
                      .little(std::uint32_t{what.recovered})
                      .take();
  return detail::byte_writer{}.little(detail::crc32c(detail::bytes_of(body))).take() + body;
}

result<base_id> decode_base(std::string_view bytes) {
  const failure damaged{errc::damaged, "is damaged"};
  detail::byte_reader reader{bytes};
  const auto sum = reader.little<std::uint32_t>();
  base_id what;
  what.sequence = reader.little<std::uint64_t>();
  what.history.value = reader.little<std::uint64_t>();
  what.generation.value = reader.little<std::uint64_t>();
  if (bytes.size() < sizeof sum
      || sum != detail::crc32c(detail::bytes_of(bytes.substr(sizeof sum))))
    return damaged;
  if (reader.complete())
    return what; // Format 1.
  if (const auto format = reader.little<std::uint32_t>(); format != base_format)
    return failure{errc::version_mismatch,
                   "has format " + std::to_string(format) + ", which this program does not know"};
  what.recovered = reader.little<std::uint32_t>() != 0;
  return reader.complete() ? result<base_id>{what} : damaged;
}

} // namespace troupe::storage
