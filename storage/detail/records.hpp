// Keys and values of a server's database.
//
//   'b' partition table block   (big-endian u32 u32 u64)  a block: header, values, optimiser state
//   'r' partition table slab    (big-endian u32 u32 u64)  rows: header, keys, steps, values + state
//   'm' partition               (big-endian u32)          version, applied batches by table
//   'z'                         'cut complete': checkpoint, chain, number of partitions and blocks
//
// Older checkpoints also have a key 'c', the workers' clocks. It is not read, and must not be used
// for other data.
//
// Every value begins with u32 format (1) and u32 crc32c. The checksum covers the key and the rest
// of the value, so that a record in a wrong place is noticed too. Integers are little-endian.
//
//   block    u64 version, u64 steps, u64 count, u64 state_count, f32[count], f32[state_count]
//   slab     u64 version, u64 rows, u64 row_floats, u64 1 if there are steps else 0,
//            u64[rows] keys, u64[rows] steps or none, f32[rows * row_floats]
//   meta     u64 version, u64 tables, for each: u64 floor, u64 n, u64[n] words above the floor; and
//            u64 slabs in this partition, if there are any
//   complete u64 checkpoint, u32 chain, u64 partitions, u64 blocks
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
  shard_id shard;
  std::uint64_t partitions = 0;
  std::uint64_t blocks = 0;

  bool operator==(const cut_complete&) const = default;
};

std::string block_key(partition_id partition, table_id table, std::uint64_t block);
std::string slab_key(partition_id partition, table_id table, std::uint64_t slab);
/// Returns the common prefix of the keys of all blocks, or slabs, of a partition.
std::string block_prefix(partition_id partition);
std::string slab_prefix(partition_id partition);
std::string meta_key(partition_id partition);
std::string complete_key();

/// A value in consecutive parts; all but the first are borrowed from the image.
struct stored_value {
  std::string header;
  std::array<std::string_view, 3> rest;
};

stored_value encode_block(std::string_view key, const block_image& image);
stored_value encode_slab(std::string_view key, const slab_image& image);
std::string encode_meta(std::string_view key, const partition_image& image);
std::string encode_complete(std::string_view key, const cut_complete& what);

/// A partition's record without its blocks and slabs.
struct partition_meta {
  partition_image image; ///< Without its number, blocks and slabs.
  std::uint64_t slabs = 0;
};

// Return nullopt unless the record is as written under this key. The memory of a decoded block or
// slab is a copy, from `pool`.
std::optional<block_image> decode_block(std::string_view key, std::string_view value,
                                        buffer_pool& pool);
std::optional<slab_image> decode_slab(std::string_view key, std::string_view value,
                                      buffer_pool& pool);
std::optional<partition_meta> decode_meta(std::string_view key, std::string_view value);
std::optional<cut_complete> decode_complete(std::string_view key, std::string_view value);

} // namespace troupe::storage::detail
