// Cuts tables into blocks or slabs, and assigns each block and row to a partition. The layout is a
// pure function of the job, so every process computes the same one.
#pragma once

#include "serialization/ids.hpp"
#include "serialization/job.hpp"
#include "serialization/messages.hpp"
#include "serialization/rows.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace troupe {

// -- dense tables --

/// Returns the elements of one block: min(1 MiB, a sixteenth of the table), at least 16 KiB, a
/// multiple of 16 elements. Only the last block may have fewer.
std::uint64_t block_elements(const table_spec& table);
std::uint64_t block_count(const table_spec& table);
/// Returns elements [first, first + count) of block `block`.
range block_range(const job_spec& job, table_id table, std::uint64_t block);
/// Calls visit(part, offset) with the part of `where` in each block, in order. `offset`: elements
/// of `where` before it. `per_block`: block_elements() of its table.
template <class Visit>
void cut_at_blocks(const range& where, std::uint64_t per_block, Visit visit) {
  const auto end = where.first + where.count;
  for (std::uint64_t first = where.first; first < end;) {
    const auto next = std::min(end, (first / per_block + 1) * per_block);
    visit(range{where.table, first, next - first, where.stamp}, first - where.first);
    first = next;
  }
}
/// Returns the values from element `offset` on, of the same memory.
inline float_ptr at_offset(const float_ptr& values, std::uint64_t offset) {
  return {values, values.get() + offset};
}
/// Returns (fnv1a64(table name) + block) mod job.partitions.
partition_id partition_of(const job_spec& job, table_id table, std::uint64_t block);

// -- sparse tables --

/// Returns the partition of the row `key` of any sparse table: row_hash(key) mod job.partitions.
inline partition_id partition_of(const job_spec& job, std::uint64_t key) {
  return {static_cast<std::uint32_t>(row_hash(key) % job.partitions)};
}
/// Returns the rows that a partition stores together: a power of two in 16 .. 4096, whose values
/// have about 64 KiB. Only the last slab of a partition may have fewer.
std::uint64_t slab_rows(const table_spec& table);

// -- partitions --

/// Returns the bytes of values in each partition. Rows are not known beforehand: a sparse table
/// counts as 1 MiB in each.
std::vector<std::uint64_t> partition_bytes(const job_spec& job);

/// Assigns each partition to a shard. The map is balanced by bytes, and no shard stays empty if
/// there are enough partitions. Moves as few partitions as the balance allows away from `previous`
/// (empty: no previous map). Deterministic.
std::vector<shard_id> make_partition_map(const job_spec& job, std::uint32_t shards,
                                         const std::vector<shard_id>& previous);

} // namespace troupe
