#include "storage/detail/records.hpp"

#include "storage/detail/bytes.hpp"
#include "storage/detail/crc32c.hpp"

#include <bit>
#include <cstring>
#include <utility>

namespace troupe::storage::detail {

// Values are stored as they lie in memory.
static_assert(std::endian::native == std::endian::little && sizeof(float) == 4);

namespace {

constexpr std::uint32_t format = 1;
constexpr std::size_t envelope_bytes = 8; ///< Format and checksum.
constexpr std::size_t block_header_bytes = envelope_bytes + 4 * 8;

std::string_view bytes_of_floats(const float_ptr& values, std::uint64_t count) {
  return {reinterpret_cast<const char*>(values.get()), count * sizeof(float)};
}

std::uint32_t sum_of(std::string_view key, std::string_view header, std::string_view rest = {},
                     std::string_view end = {}) {
  auto sum = crc32c(bytes_of(key));
  for (const auto part : {header, rest, end})
    sum = crc32c(bytes_of(part), sum);
  return sum;
}

std::string envelope(std::uint32_t sum) { return byte_writer{}.little(format).little(sum).take(); }

std::string enclose(std::string_view key, std::string body) {
  return envelope(sum_of(key, body)) + body;
}

/// What is behind the envelope, if it is the right one.
std::optional<std::string_view> disclose(std::string_view key, std::string_view value) {
  if (value.size() < envelope_bytes)
    return std::nullopt;
  byte_reader reader{value.substr(0, envelope_bytes)};
  const auto read_format = reader.little<std::uint32_t>();
  const auto sum = reader.little<std::uint32_t>();
  const auto body = value.substr(envelope_bytes);
  if (read_format != format || sum != sum_of(key, body))
    return std::nullopt;
  return body;
}

float_ptr copy_floats(std::string_view bytes, buffer_pool& pool) {
  if (bytes.empty())
    return nullptr;
  auto floats = pool.floats(bytes.size() / sizeof(float));
  std::memcpy(floats.get(), bytes.data(), bytes.size());
  return floats;
}

} // namespace

std::string block_prefix(partition_id partition) {
  return 'b' + byte_writer{}.big(partition.value).take();
}

std::string block_key(partition_id partition, table_id table, std::uint64_t block) {
  return block_prefix(partition) + byte_writer{}.big(table.value).big(block).take();
}

std::string meta_key(partition_id partition) {
  return 'm' + byte_writer{}.big(partition.value).take();
}

std::string complete_key() { return "z"; }

block_record encode_block(std::string_view key, const block_image& image) {
  const auto numbers = byte_writer{}
                         .little(image.version)
                         .little(image.steps)
                         .little(image.count)
                         .little(image.state_count)
                         .take();
  block_record record;
  record.values = bytes_of_floats(image.values, image.count);
  record.state = bytes_of_floats(image.state, image.state_count);
  record.header = envelope(sum_of(key, numbers, record.values, record.state)) + numbers;
  return record;
}

std::string encode_meta(std::string_view key, const partition_image& image) {
  byte_writer writer;
  writer.little(image.version).little(std::uint64_t{image.marks.size()});
  for (const auto& marks : image.marks) {
    writer.little(marks.floor().value).little(std::uint64_t{marks.words().size()});
    for (const auto word : marks.words())
      writer.little(word);
  }
  return enclose(key, writer.take());
}

std::string encode_complete(std::string_view key, const cut_complete& what) {
  return enclose(key, byte_writer{}
                        .little(what.checkpoint)
                        .little(what.server.value)
                        .little(what.partitions)
                        .little(what.blocks)
                        .take());
}

std::optional<block_image> decode_block(std::string_view key, std::string_view value,
                                        buffer_pool& pool) {
  const auto body = disclose(key, value);
  // 'b' u32 u32 u64, as block_key() makes it.
  if (!body || key.size() != 17 || value.size() < block_header_bytes)
    return std::nullopt;
  byte_reader numbers{body->substr(0, block_header_bytes - envelope_bytes)};
  block_image image;
  image.version = numbers.little<std::uint64_t>();
  image.steps = numbers.little<std::uint64_t>();
  image.count = numbers.little<std::uint64_t>();
  image.state_count = numbers.little<std::uint64_t>();
  const auto floats = body->substr(block_header_bytes - envelope_bytes);
  const auto available = floats.size() / sizeof(float);
  if (floats.size() % sizeof(float) != 0 || image.count > available
      || image.state_count != available - image.count)
    return std::nullopt;
  for (const char c : key.substr(5, 4))
    image.table.value = image.table.value << 8 | static_cast<unsigned char>(c);
  for (const char c : key.substr(9, 8))
    image.block = image.block << 8 | static_cast<unsigned char>(c);
  image.values = copy_floats(floats.substr(0, image.count * sizeof(float)), pool);
  image.state = copy_floats(floats.substr(image.count * sizeof(float)), pool);
  return image;
}

std::optional<partition_image> decode_meta(std::string_view key, std::string_view value) {
  const auto body = disclose(key, value);
  if (!body)
    return std::nullopt;
  byte_reader reader{*body};
  partition_image image;
  image.version = reader.little<std::uint64_t>();
  const auto tables = reader.little<std::uint64_t>();
  for (std::uint64_t i = 0; i < tables && reader.left() > 0; ++i) {
    const batch_id floor{reader.little<std::uint64_t>()};
    const auto count = reader.little<std::uint64_t>();
    if (count > reader.left() / sizeof(std::uint64_t))
      return std::nullopt;
    std::vector<std::uint64_t> words(count);
    for (auto& word : words)
      word = reader.little<std::uint64_t>();
    image.marks.emplace_back(floor, std::move(words));
  }
  if (!reader.complete() || image.marks.size() != tables)
    return std::nullopt;
  return image;
}

std::optional<cut_complete> decode_complete(std::string_view key, std::string_view value) {
  const auto body = disclose(key, value);
  if (!body)
    return std::nullopt;
  byte_reader reader{*body};
  cut_complete what;
  what.checkpoint = reader.little<std::uint64_t>();
  what.server.value = reader.little<std::uint32_t>();
  what.partitions = reader.little<std::uint64_t>();
  what.blocks = reader.little<std::uint64_t>();
  if (!reader.complete())
    return std::nullopt;
  return what;
}

} // namespace troupe::storage::detail
