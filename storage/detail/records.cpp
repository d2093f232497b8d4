#include "storage/detail/records.hpp"

#include "base/bytes.hpp"
#include "base/crc32c.hpp"

#include <bit>
#include <cstring>
#include <utility>

namespace troupe::storage::detail {

// Values are stored as they lie in memory.
static_assert(std::endian::native == std::endian::little && sizeof(float) == 4);

namespace {

constexpr std::uint32_t value_format = 1;
constexpr std::size_t envelope_bytes = 8; ///< Format and checksum.
/// Header of blocks and slabs: four numbers.
constexpr std::size_t header_bytes = envelope_bytes + 4 * 8;

template <class T>
std::string_view bytes_of_numbers(const std::shared_ptr<const T>& values, std::uint64_t count) {
  return {reinterpret_cast<const char*>(values.get()), count * sizeof(T)};
}

std::uint32_t sum_of(std::string_view key, std::string_view header,
                     const std::array<std::string_view, 3>& rest = {}) {
  auto sum = crc32c(bytes_of(header), crc32c(bytes_of(key)));
  for (const auto part : rest)
    sum = crc32c(bytes_of(part), sum);
  return sum;
}

std::string envelope(std::uint32_t sum) {
  return byte_writer{}.little(value_format).little(sum).take();
}

std::string enclose(std::string_view key, std::string body) {
  return envelope(sum_of(key, body)) + body;
}

/// Returns the bytes behind the envelope; nullopt if the envelope does not fit.
std::optional<std::string_view> disclose(std::string_view key, std::string_view value) {
  if (value.size() < envelope_bytes)
    return std::nullopt;
  byte_reader reader{value.substr(0, envelope_bytes)};
  const auto read_format = reader.little<std::uint32_t>();
  const auto sum = reader.little<std::uint32_t>();
  const auto body = value.substr(envelope_bytes);
  if (read_format != value_format || sum != sum_of(key, body))
    return std::nullopt;
  return body;
}

template <class T>
std::shared_ptr<const T> copy_numbers(std::string_view bytes, buffer_pool& pool) {
  if (bytes.empty())
    return nullptr;
  const auto memory = pool.bytes(bytes.size());
  std::memcpy(memory.get(), bytes.data(), bytes.size());
  return {memory, reinterpret_cast<const T*>(memory.get())};
}

stored_value stored_value_of(std::string_view key, std::string numbers,
                             const std::array<std::string_view, 3>& rest) {
  return {envelope(sum_of(key, numbers, rest)) + numbers, rest};
}

/// Length of a block_key() or slab_key(): a letter, partition, table, and block or slab.
constexpr std::size_t key_bytes = 17;

std::string key_of(std::string prefix, table_id table, std::uint64_t number) {
  return std::move(prefix) + byte_writer{}.big(table.value).big(number).take();
}

std::uint64_t number_in(std::string_view big_endian) {
  std::uint64_t number = 0;
  for (const char c : big_endian)
    number = number << 8 | static_cast<unsigned char>(c);
  return number;
}

table_id table_in(std::string_view key) {
  return {static_cast<std::uint32_t>(number_in(key.substr(5, 4)))};
}

} // namespace

std::string block_prefix(partition_id partition) {
  return 'b' + byte_writer{}.big(partition.value).take();
}

std::string block_key(partition_id partition, table_id table, std::uint64_t block) {
  return key_of(block_prefix(partition), table, block);
}

std::string slab_prefix(partition_id partition) {
  return 'r' + byte_writer{}.big(partition.value).take();
}

std::string slab_key(partition_id partition, table_id table, std::uint64_t slab) {
  return key_of(slab_prefix(partition), table, slab);
}

std::string meta_key(partition_id partition) {
  return 'm' + byte_writer{}.big(partition.value).take();
}

std::string complete_key() { return "z"; }

stored_value encode_block(std::string_view key, const block_image& image) {
  return stored_value_of(key,
                         byte_writer{}
                           .little(image.version)
                           .little(image.steps)
                           .little(image.count)
                           .little(image.state_count)
                           .take(),
                         {bytes_of_numbers(image.values, image.count),
                          bytes_of_numbers(image.state, image.state_count),
                          {}});
}

stored_value encode_slab(std::string_view key, const slab_image& image) {
  const std::uint64_t steps = image.steps ? 1 : 0;
  return stored_value_of(key,
                         byte_writer{}
                           .little(image.version)
                           .little(image.count)
                           .little(image.row_floats)
                           .little(steps)
                           .take(),
                         {bytes_of_numbers(image.keys, image.count),
                          bytes_of_numbers(image.steps, steps * image.count),
                          bytes_of_numbers(image.rows, image.count * image.row_floats)});
}

std::string encode_meta(std::string_view key, const partition_image& image) {
  byte_writer writer;
  writer.little(image.version).little(std::uint64_t{image.applied.size()});
  for (const auto& applied : image.applied) {
    writer.little(applied.floor().value).little(std::uint64_t{applied.words().size()});
    for (const auto word : applied.words())
      writer.little(word);
  }
  if (!image.slabs.empty())
    writer.little(std::uint64_t{image.slabs.size()});
  return enclose(key, writer.take());
}

std::string encode_complete(std::string_view key, const cut_complete& what) {
  return enclose(key, byte_writer{}
                        .little(what.checkpoint)
                        .little(what.shard.value)
                        .little(what.partitions)
                        .little(what.blocks)
                        .take());
}

std::optional<block_image> decode_block(std::string_view key, std::string_view value,
                                        buffer_pool& pool) {
  const auto body = disclose(key, value);
  if (!body || key.size() != key_bytes || value.size() < header_bytes)
    return std::nullopt;
  byte_reader numbers{body->substr(0, header_bytes - envelope_bytes)};
  block_image image;
  image.version = numbers.little<std::uint64_t>();
  image.steps = numbers.little<std::uint64_t>();
  image.count = numbers.little<std::uint64_t>();
  image.state_count = numbers.little<std::uint64_t>();
  const auto floats = body->substr(header_bytes - envelope_bytes);
  const auto available = floats.size() / sizeof(float);
  if (floats.size() % sizeof(float) != 0 || image.count > available
      || image.state_count != available - image.count)
    return std::nullopt;
  image.table = table_in(key);
  image.block = number_in(key.substr(9));
  image.values = copy_numbers<float>(floats.substr(0, image.count * sizeof(float)), pool);
  image.state = copy_numbers<float>(floats.substr(image.count * sizeof(float)), pool);
  return image;
}

std::optional<slab_image> decode_slab(std::string_view key, std::string_view value,
                                      buffer_pool& pool) {
  const auto body = disclose(key, value);
  if (!body || key.size() != key_bytes || value.size() < header_bytes)
    return std::nullopt;
  byte_reader numbers{body->substr(0, header_bytes - envelope_bytes)};
  slab_image image;
  image.version = numbers.little<std::uint64_t>();
  image.count = numbers.little<std::uint64_t>();
  image.row_floats = numbers.little<std::uint64_t>();
  const auto steps = numbers.little<std::uint64_t>();
  const auto rest = body->substr(header_bytes - envelope_bytes);
  // Each number alone is bounded, so that no product overflows.
  if (steps > 1 || image.count > rest.size() || image.row_floats > rest.size()
      || rest.size() != image.count * (8 * (1 + steps) + 4 * image.row_floats))
    return std::nullopt;
  image.table = table_in(key);
  image.slab = number_in(key.substr(9));
  const std::size_t numbers_bytes = image.count * sizeof(std::uint64_t);
  image.keys = copy_numbers<std::uint64_t>(rest.substr(0, numbers_bytes), pool);
  image.steps =
    copy_numbers<std::uint64_t>(rest.substr(numbers_bytes, steps * numbers_bytes), pool);
  image.rows = copy_numbers<float>(rest.substr((1 + steps) * numbers_bytes), pool);
  return image;
}

std::optional<partition_meta> decode_meta(std::string_view key, std::string_view value) {
  const auto body = disclose(key, value);
  if (!body)
    return std::nullopt;
  byte_reader reader{*body};
  partition_meta meta;
  partition_image& image = meta.image;
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
    image.applied.emplace_back(floor, std::move(words));
  }
  if (reader.left() > 0)
    meta.slabs = reader.little<std::uint64_t>();
  if (!reader.complete() || image.applied.size() != tables)
    return std::nullopt;
  return meta;
}

std::optional<cut_complete> decode_complete(std::string_view key, std::string_view value) {
  const auto body = disclose(key, value);
  if (!body)
    return std::nullopt;
  byte_reader reader{*body};
  cut_complete what;
  what.checkpoint = reader.little<std::uint64_t>();
  what.shard.value = reader.little<std::uint32_t>();
  what.partitions = reader.little<std::uint64_t>();
  what.blocks = reader.little<std::uint64_t>();
  if (!reader.complete())
    return std::nullopt;
  return what;
}

} // namespace troupe::storage::detail
