// Writes records one behind the other: u32 magic, u32 crc32c of the next 20 bytes, u64 index, u64
// bytes of the frame, u32 crc32c of the frame; little-endian. An entry's frame is the one that
// replicas send each other (wire.hpp); a truncation has none.
#include "storage/write_ahead_log.hpp"

#include "base/bytes.hpp"
#include "base/crc32c.hpp"
#include "serialization/wire.hpp"

#include <cstdlib>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>

namespace troupe::storage {

namespace fs = std::filesystem;

namespace {

constexpr std::uint32_t log_magic = 0x4c505254; // "TRPL"
constexpr std::size_t log_header_bytes = 28;
constexpr std::size_t alignment = 64; ///< Alignment of memory that the decoder takes.

using spans = std::vector<std::span<const std::byte>>;

struct log_header {
  std::uint64_t index = 0;
  std::uint64_t frame_bytes = 0;
  std::uint32_t frame_sum = 0;

  bool is_truncation() const { return frame_bytes == 0; }
};

std::string encode(const log_header& what) {
  const auto summed =
    detail::byte_writer{}.little(what.index).little(what.frame_bytes).little(what.frame_sum).take();
  const auto sum = detail::crc32c(detail::bytes_of(summed));
  return detail::byte_writer{}.little(log_magic).little(sum).take() + summed;
}

/// Returns nullopt if the bytes are not a header.
std::optional<log_header> decode_header(const std::string& bytes) {
  log_header what;
  detail::byte_reader reader{std::string_view{bytes}.substr(2 * sizeof(std::uint32_t))};
  what.index = reader.little<std::uint64_t>();
  what.frame_bytes = reader.little<std::uint64_t>();
  what.frame_sum = reader.little<std::uint32_t>();
  return encode(what) == bytes ? std::optional{what} : std::nullopt;
}

std::uint32_t sum_of(const spans& frame) {
  std::uint32_t sum = 0;
  for (const auto part : frame)
    sum = detail::crc32c(part, sum);
  return sum;
}

result<void> write_record(const descriptor& file, const fs::path& path, std::uint64_t index,
                          const spans& frame) {
  log_header what{.index = index, .frame_sum = sum_of(frame)};
  for (const auto part : frame)
    what.frame_bytes += part.size();
  if (auto done = write_all(file, detail::bytes_of(encode(what)), path); !done)
    return done;
  for (const auto part : frame)
    if (auto done = write_all(file, part, path); !done)
      return done;
  return {};
}

} // namespace

result<write_ahead_log> write_ahead_log::create(fs::path path) {
  auto file = create_file(path);
  if (!file)
    return file.error();
  return write_ahead_log{std::move(path), *std::move(file)};
}

result<void> write_ahead_log::append(std::uint64_t index, const log_entry& what) {
  const auto frame = wire::encode(replica_message{{}, {}, entry_message{{{}, index, 0}, what}});
  spans parts{frame.head};
  for (const auto& part : frame.body)
    parts.push_back(part.bytes);
  return write_record(file_, path_, index, parts);
}

result<void> write_ahead_log::truncate(std::uint64_t last) {
  return write_record(file_, path_, last, {});
}

namespace {

/// Reads the records of a file in order.
class log_reader {
public:
  log_reader(const fs::path& path, descriptor file, std::uint64_t size_bytes)
      : path_(path), file_(std::move(file)), left_(size_bytes) {}

  /// Returns the next header; nullopt at the end, or if the next record is incomplete.
  result<std::optional<log_header>> next() {
    if (left_ < log_header_bytes)
      return std::optional<log_header>{};
    std::string bytes(log_header_bytes, 0);
    if (auto done = take({reinterpret_cast<std::byte*>(bytes.data()), bytes.size()}); !done)
      return done.error();
    const auto what = decode_header(bytes);
    if (!what)
      return damaged("a record does not begin where one should");
    return what->frame_bytes > left_ ? std::optional<log_header>{} : what;
  }

  /// Returns the content of the record.
  result<log_entry> entry(const log_header& what) {
    if (what.frame_bytes < wire::prefix_bytes)
      return damaged("an entry is shorter than any frame");
    std::byte prefix[wire::prefix_bytes];
    if (auto done = take(prefix); !done)
      return done.error();
    const auto sizes = wire::decode_prefix(prefix);
    if (!sizes || sizes->head_bytes + sizes->body_bytes + sizeof prefix != what.frame_bytes)
      return damaged("an entry has another length than its frame says");
    const auto head = memory(sizes->head_bytes);
    const auto body = memory(sizes->body_bytes);
    const std::span<std::byte> head_span{head.get(), sizes->head_bytes};
    const std::span<std::byte> body_span{body.get(), sizes->body_bytes};
    for (const auto part : {head_span, body_span})
      if (auto done = take(part); !done)
        return done.error();
    if (what.frame_sum != sum_of({prefix, head_span, body_span}))
      return damaged("the checksum of entry " + std::to_string(what.index) + " is wrong");
    auto decoded = wire::decode(head_span, body, sizes->body_bytes);
    if (!decoded)
      return decoded.error();
    auto* peer = std::get_if<replica_message>(&*decoded);
    auto* entry = peer == nullptr ? nullptr : std::get_if<entry_message>(&peer->what);
    if (entry == nullptr)
      return damaged("a record holds no entry");
    return std::move(entry->entry);
  }

private:
  static std::shared_ptr<std::byte> memory(std::size_t bytes) {
    const auto rounded = (bytes + alignment - 1) / alignment * alignment;
    return {static_cast<std::byte*>(::operator new (rounded, std::align_val_t{alignment})),
            [](std::byte* made) { ::operator delete (made, std::align_val_t{alignment}); }};
  }

  result<void> take(std::span<std::byte> into) {
    const auto n = read_some(file_, into, path_);
    if (!n)
      return n.error();
    if (*n < into.size())
      return damaged("it became shorter while it was read");
    left_ -= into.size();
    return {};
  }

  failure damaged(const std::string& why) const {
    return {errc::damaged, "the log " + path_.string() + " is damaged: " + why};
  }

  const fs::path& path_;
  descriptor file_;
  std::uint64_t left_;
};

using entry_map = std::map<std::uint64_t, log_entry>;

result<void> read_log(const fs::path& path, entry_map& entries) {
  auto file = open_to_read(path);
  std::error_code error;
  const auto size_bytes = fs::file_size(path, error);
  if (!file || error)
    return file ? io_failure("read", path, error) : file.error();
  log_reader reader{path, *std::move(file), size_bytes};
  for (;;) {
    const auto record = reader.next();
    if (!record)
      return record.error();
    if (!*record)
      return {};
    const auto& what = **record;
    entries.erase(what.is_truncation() ? entries.upper_bound(what.index)
                                       : entries.lower_bound(what.index),
                  entries.end());
    if (what.is_truncation())
      continue;
    auto entry = reader.entry(what);
    if (!entry)
      return entry.error();
    entries.emplace(what.index, *std::move(entry));
  }
}

} // namespace

result<std::vector<log_entry>> read_logs(const std::vector<fs::path>& paths) {
  entry_map entries;
  for (const auto& path : paths)
    if (auto done = read_log(path, entries); !done)
      return done.error();
  std::vector<log_entry> all;
  for (auto& [unused, entry] : entries)
    all.push_back(std::move(entry));
  return all;
}

} // namespace troupe::storage
