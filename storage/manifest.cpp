#include "storage/manifest.hpp"

#include "base/bytes.hpp"
#include "base/crc32c.hpp"
#include "base/system/file.hpp"
#include "serialization/wire.hpp"
#include "storage/detail/paths.hpp"
#include "storage/job_difference.hpp"

#include "nlohmann/json.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <span>
#include <system_error>
#include <utility>

namespace troupe::storage {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;

namespace {

constexpr int manifest_format = 1;
constexpr std::size_t manifest_bytes_max = std::size_t{64} << 20;
constexpr std::size_t commit_bytes_max = 4096;

template <std::unsigned_integral T>
std::string to_hex(T value) {
  char text[2 * sizeof(T) + 1];
  std::snprintf(text, sizeof text, "%0*llx", static_cast<int>(2 * sizeof(T)),
                static_cast<unsigned long long>(value));
  return text;
}

std::string to_hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const auto byte : bytes)
    text += to_hex(std::to_integer<std::uint8_t>(byte));
  return text;
}

/// Returns false if `text` is not hexadecimal of the width of T.
template <std::unsigned_integral T>
bool from_hex(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return text.size() == 2 * sizeof(T) && error == std::errc{} && end == text.data() + text.size();
}

bool from_hex(std::string_view text, std::vector<std::byte>& bytes) {
  for (; text.size() >= 2; text.remove_prefix(2)) {
    std::uint8_t value = 0;
    if (!from_hex(text.substr(0, 2), value))
      return false;
    bytes.push_back(std::byte{value});
  }
  return text.empty();
}

json to_json(const job_spec& job) {
  auto tables = json::array();
  for (const auto& table : job.tables) {
    tables.push_back({{"name", table.name},
                      {"shape", table.shape},
                      {"optimizer", table.optimizer.name()},
                      {"consistency", to_string(table.sync)}});
    if (table.is_sparse())
      tables.back()["width"] = table.width;
  }
  return {{"name", job.name},
          {"fingerprint", to_hex(fingerprint(job))},
          {"partitions", job.partitions},
          {"tables", std::move(tables)},
          {"spec", to_hex(wire::encode_job(job))}};
}

/// Accepts only a file directly in the part's folder: a manifest must not lead out of its
/// checkpoint.
bool is_inside(const std::string& name, shard_id shard) {
  const auto folder = detail::part_name(shard) + "/";
  return name.starts_with(folder) && name.size() > folder.size()
         && name.find('/', folder.size()) == std::string::npos && !name.ends_with("/..")
         && !name.ends_with("/.");
}

result<checkpoint_part> part_from_json(const json& from, std::uint64_t checkpoint) {
  checkpoint_part part;
  part.checkpoint = checkpoint;
  part.shard.value = from.at("chain").get<std::uint32_t>();
  part.version = from.at("version").get<std::uint64_t>();
  for (const auto& entry : from.at("files")) {
    file_entry file{entry.at("name").get<std::string>(),
                    entry.at("size_bytes").get<std::uint64_t>(), 0};
    if (!from_hex(entry.at("crc32c").get<std::string>(), file.crc32c))
      return {errc::malformed, "a checksum is not 8 hexadecimal digits: " + file.name};
    if (!is_inside(file.name, part.shard))
      return {errc::malformed, "a file lies outside its part: " + file.name};
    part.files.push_back(std::move(file));
  }
  return part;
}

/// Throws nlohmann::json::exception if a field is missing or of another type.
result<manifest> manifest_from(const json& from) {
  if (from.at("format").get<int>() != manifest_format)
    return {errc::malformed, "the manifest's format is unknown: " + from.at("format").dump()};
  manifest what;
  what.checkpoint = from.at("checkpoint").get<std::uint64_t>();
  what.generation.value = from.at("generation").get<std::uint64_t>();
  what.clock = from.at("clock").get<std::uint64_t>();
  what.cursor.value = from.at("cursor").get<std::uint64_t>();
  std::vector<std::byte> spec;
  if (!from_hex(from.at("job").at("spec").get<std::string>(), spec))
    return {errc::malformed, "the job's spec is not hexadecimal"};
  auto job = wire::decode_job(spec);
  if (!job)
    return job.error();
  what.job = *std::move(job);
  for (const auto& entry : from.at("parts")) {
    auto part = part_from_json(entry, what.checkpoint);
    if (!part)
      return part.error();
    what.parts.push_back(*std::move(part));
  }
  return what;
}

/// Returns the only valid content of a COMMIT.
std::string seal_of(std::string_view manifest_text) {
  return "manifest.json " + std::to_string(manifest_text.size()) + " bytes crc32c "
         + to_hex(detail::crc32c(detail::bytes_of(manifest_text))) + "\n";
}

result<void> check_present(const fs::path& home, const manifest& what) {
  for (const auto& part : what.parts) {
    if (part.checkpoint != what.checkpoint)
      return {errc::io_failed, "a part of checkpoint " + std::to_string(part.checkpoint)
                                 + " cannot be committed in " + home.string()};
    for (const auto& file : part.files) {
      std::error_code error;
      const auto size = fs::file_size(home / file.name, error);
      if (error)
        return io_failure("commit", home / file.name, error);
      if (size != file.size_bytes || !is_inside(file.name, part.shard))
        return {errc::io_failed, "a file differs from its entry: " + (home / file.name).string()};
    }
  }
  return {};
}

failure unreadable(const fs::path& directory, std::uint64_t checkpoint, const failure& why) {
  return {why.code, detail::title(directory, checkpoint) + " is unreadable: " + why.text};
}

} // namespace

std::string to_json(const manifest& what) {
  auto parts = json::array();
  for (const auto& part : what.parts) {
    auto files = json::array();
    for (const auto& file : part.files)
      files.push_back(
        {{"name", file.name}, {"size_bytes", file.size_bytes}, {"crc32c", to_hex(file.crc32c)}});
    parts.push_back(
      {{"chain", part.shard.value}, {"version", part.version}, {"files", std::move(files)}});
  }
  const json whole{{"format", manifest_format},
                   {"checkpoint", what.checkpoint},
                   {"generation", what.generation.value},
                   {"clock", what.clock},
                   {"cursor", what.cursor.value},
                   {"job", to_json(what.job)},
                   {"parts", std::move(parts)}};
  // The names here are only for people, so bytes that are not UTF-8 may be replaced.
  return whole.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

result<manifest> manifest_from_json(std::string_view text) {
  try {
    return manifest_from(json::parse(text));
  } catch (const json::exception& error) {
    return {errc::malformed, std::string{"the manifest cannot be read: "} + error.what()};
  }
}

result<void> commit(const fs::path& directory, const manifest& what) {
  const auto home = detail::checkpoint_path(directory, what.checkpoint);
  const auto text = to_json(what);
  if (is_committed(directory, what.checkpoint)) {
    const auto present = read_file(home / detail::manifest_name, manifest_bytes_max);
    if (present && *present == text && load_manifest(directory, what.checkpoint))
      return {};
    return {errc::io_failed, detail::title(directory, what.checkpoint) + " is already committed"};
  }
  if (auto present = check_present(home, what); !present)
    return present;
  if (auto done = replace_file(home / detail::manifest_name, text); !done)
    return done;
  // The names of the sealed files must be durable before COMMIT is.
  for (const auto& parent : {detail::checkpoints_path(directory), directory})
    if (auto done = sync_directory(parent); !done)
      return done;
  return replace_file(home / detail::commit_name, seal_of(text));
}

bool is_committed(const fs::path& directory, std::uint64_t checkpoint) {
  std::error_code error;
  return fs::exists(detail::checkpoint_path(directory, checkpoint) / detail::commit_name, error);
}

result<manifest> load_manifest(const fs::path& directory, std::uint64_t checkpoint) {
  const auto home = detail::checkpoint_path(directory, checkpoint);
  if (!is_committed(directory, checkpoint))
    return {errc::io_failed, detail::title(directory, checkpoint)
                               + " does not exist or was never "
                                 "committed"};
  std::error_code error;
  if (!fs::exists(home / detail::manifest_name, error) && !error)
    return detail::damaged_checkpoint(directory, checkpoint, "manifest.json is missing");
  for (const auto& [name, bytes_max] : {std::pair{detail::commit_name, commit_bytes_max},
                                        std::pair{detail::manifest_name, manifest_bytes_max}}) {
    const auto size = fs::file_size(home / name, error);
    if (error)
      return unreadable(directory, checkpoint, io_failure("read", home / name, error));
    if (size > bytes_max)
      return detail::damaged_checkpoint(directory, checkpoint,
                                        "manifest.json or COMMIT is too large");
  }
  const auto seal = read_file(home / detail::commit_name, commit_bytes_max);
  if (!seal)
    return unreadable(directory, checkpoint, seal.error());
  const auto text = read_file(home / detail::manifest_name, manifest_bytes_max);
  if (!text)
    return unreadable(directory, checkpoint, text.error());
  if (*seal != seal_of(*text))
    return detail::damaged_checkpoint(directory, checkpoint,
                                      "manifest.json and COMMIT do not fit together");
  auto what = manifest_from_json(*text);
  if (!what)
    return detail::damaged_checkpoint(directory, checkpoint, what.error().text);
  if (what->checkpoint != checkpoint)
    return detail::damaged_checkpoint(directory, checkpoint,
                                      "its manifest is that of checkpoint "
                                        + std::to_string(what->checkpoint));
  return what;
}

result<void> check_job(const fs::path& directory, const manifest& what, const job_spec& job) {
  if (is_of(fingerprint(what.job), job))
    return {};
  return {errc::wrong_job, detail::title(directory, what.checkpoint) + " belongs to another "
                             + job_difference(what.job, job)};
}

} // namespace troupe::storage
