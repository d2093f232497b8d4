// Keys and values of a server's database.
//
//   'b' partition table block   (big-endian u32 u32 u64)  a block: header, values, optimiser state
//   'm' partition               (big-endian u32)          version of a partition, marks by table
//   'z'                         'cut complete': checkpoint, server, how much there is
//
// Older checkpoints also have a key 'c', the workers' clocks. It is not read, and must not be used
// for anything else.
//
// Every value begins with u32 format (1) and u32 crc32c. The checksum is over the key and all of
// the value behind it, so that a record in a wrong place is noticed too. Integers are
// little-endian.
//
//   block    u64 version, u64 steps, u64 count, u64 state_count, f32[count], f32[state_count]
//   meta     u64 version, u64 tables, for each: u64 floor, u64 n, u64[n] words above the floor
//   complete u64 checkpoint, u32 server, u64 partitions, u64 blocks
#pragma once

#include "storage/cut.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::storage::detail {

struct cut_complete {
  std::uint64_t checkpoint = 0;
  server_id server;
  std::uint64_t partitions = 0;
  std::uint64_t blocks = 0;

  bool operator==(const cut_complete&) const = default;
};

std::string block_key(partition_id partition, table_id table, std::uint64_t block);
/// Beginning of the keys of all blocks of a partition.
std::string block_prefix(partition_id partition);
std::string meta_key(partition_id partition);
std::string complete_key();

/// A block's value in three stretches that follow each other; two are borrowed from the image.
struct block_record {
  std::string header;
  std::string_view values;
  std::string_view state;
};

block_record encode_block(std::string_view key, const block_image& image);
std::string encode_meta(std::string_view key, const partition_image& image);
std::string encode_complete(std::string_view key, const cut_complete& what);

// Nothing where the record is not what was written under this key. The decoded block's memory is a
// copy, from `pool`; decode_meta leaves the partition number and the blocks empty.
std::optional<block_image> decode_block(std::string_view key, std::string_view value,
                                        buffer_pool& pool);
std::optional<partition_image> decode_meta(std::string_view key, std::string_view value);
std::optional<cut_complete> decode_complete(std::string_view key, std::string_view value);

} // namespace troupe::storage::detail
