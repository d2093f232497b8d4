#include "storage/detail/trace_bytes.hpp"

#include "base/bytes.hpp"
#include "base/crc32c.hpp"
#include "serialization/wire.hpp"

#include <utility>

namespace troupe::storage::detail {

namespace {

constexpr std::string_view record_magic = "TROUPREC";
constexpr std::uint32_t record_format = 1;
/// Magic, format, job, chain, generation, base checkpoint, server, its incarnation, number of
/// partitions.
constexpr std::size_t fixed_bytes = 8 + 4 + 8 + 4 + 8 + 8 + 4 + 8 + 4;
constexpr std::size_t sum_bytes = 4;

std::string with_sum(std::string bytes) {
  const auto sum = crc32c(bytes_of(std::string_view{bytes}));
  return std::move(bytes) + byte_writer{}.little(sum).take();
}

/// Returns `bytes` without the checksum behind them; nullopt if the checksum is wrong.
std::optional<std::string_view> without_sum(std::string_view bytes) {
  if (bytes.size() < sum_bytes)
    return std::nullopt;
  const auto body = bytes.substr(0, bytes.size() - sum_bytes);
  byte_reader sum{bytes.substr(body.size())};
  if (sum.little<std::uint32_t>() != crc32c(bytes_of(body)))
    return std::nullopt;
  return body;
}

} // namespace

std::string bytes_of(const job_spec& job) {
  const auto bytes = wire::encode_job(job);
  return with_sum({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

result<job_spec> job_from(std::string_view bytes) {
  const auto body = without_sum(bytes);
  if (!body)
    return {errc::damaged, "the job is damaged"};
  return wire::decode_job(bytes_of(*body));
}

std::string bytes_of(const trace_header& header) {
  byte_writer numbers;
  numbers.little(record_format)
    .little(header.job)
    .little(header.shard.value)
    .little(header.generation.value)
    .little(header.base_checkpoint)
    .little(header.server.index)
    .little(header.server.incarnation.value)
    .little(static_cast<std::uint32_t>(header.partitions.size()));
  for (const auto partition : header.partitions)
    numbers.little(partition.value);
  return with_sum(std::string{record_magic} + numbers.take());
}

result<trace_header> take_trace_header(std::string_view& bytes) {
  const failure damaged{errc::damaged, "the header is damaged"};
  if (!bytes.starts_with(record_magic))
    return {errc::malformed, "no record of pushes"};
  if (bytes.size() < fixed_bytes + sum_bytes)
    return damaged;
  byte_reader reader{bytes.substr(record_magic.size())};
  if (const auto version = reader.little<std::uint32_t>(); version != record_format)
    return {errc::malformed, "format " + std::to_string(version) + " of records is unknown, only "
                               + std::to_string(record_format) + " is known"};
  trace_header header;
  header.job = reader.little<std::uint64_t>();
  header.shard.value = reader.little<std::uint32_t>();
  header.generation.value = reader.little<std::uint64_t>();
  header.base_checkpoint = reader.little<std::uint64_t>();
  header.server = member_of(server_id{reader.little<std::uint32_t>()});
  header.server.incarnation.value = reader.little<std::uint64_t>();
  const auto count = reader.little<std::uint32_t>();
  const auto size = fixed_bytes + std::size_t{count} * sizeof(std::uint32_t) + sum_bytes;
  if (bytes.size() < size || !without_sum(bytes.substr(0, size)))
    return damaged;
  for (std::uint32_t i = 0; i < count; ++i)
    header.partitions.push_back({reader.little<std::uint32_t>()});
  bytes.remove_prefix(size);
  return header;
}

std::string bytes_of(const trace_entry& record) {
  return with_sum(byte_writer{}
                    .little(record.time_ns)
                    .little(record.version)
                    .little(record.base_version)
                    .little(record.batch.value)
                    .little(record.clock)
                    .little(record.incarnation.value)
                    .little(record.worker.value)
                    .little(record.slot)
                    .little(record.slots)
                    .little(static_cast<std::uint32_t>(record.event))
                    .take());
}

std::optional<trace_entry> trace_entry_from(std::string_view bytes) {
  const auto body = bytes.size() == trace_bytes ? without_sum(bytes) : std::nullopt;
  if (!body)
    return std::nullopt;
  byte_reader reader{*body};
  trace_entry record;
  record.time_ns = reader.little<std::uint64_t>();
  record.version = reader.little<std::uint64_t>();
  record.base_version = reader.little<std::uint64_t>();
  record.batch.value = reader.little<std::uint64_t>();
  record.clock = reader.little<std::uint64_t>();
  record.incarnation.value = reader.little<std::uint64_t>();
  record.worker.value = reader.little<std::uint32_t>();
  record.slot = reader.little<std::uint16_t>();
  record.slots = reader.little<std::uint16_t>();
  record.event = static_cast<push_event>(reader.little<std::uint32_t>());
  const bool known = record.event == push_event::applied || record.event == push_event::read;
  if (!known || record.slot >= record.slots)
    return std::nullopt;
  return record;
}

} // namespace troupe::storage::detail
