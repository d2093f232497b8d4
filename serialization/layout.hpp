// How a table is cut into blocks or slabs, and in which partition each block or row lies. A pure
// function of the job, so every process computes the same.
#pragma once

#include "serialization/ids.hpp"
#include "serialization/job.hpp"
#include "serialization/messages.hpp"
#include "serialization/rows.hpp"

#include <cstdint>
#include <vector>

namespace troupe {

// -- dense tables --

/// Elements of one block: min(1 MiB, a sixteenth of the table), at least 16 KiB, a multiple of 16
/// elements. Every block but the last has this many.
std::uint64_t block_elements(const table_spec& table);
std::uint64_t block_count(const table_spec& table);
/// Elements [first, first + count) of block `block`.
range block_range(const job_spec& job, table_id table, std::uint64_t block);
/// (fnv1a64(table name) + block) mod job.partitions.
partition_id partition_of(const job_spec& job, table_id table, std::uint64_t block);

// -- sparse tables --

/// Where the row under `key` lies, of any sparse table: row_hash(key) mod job.partitions.
inline partition_id partition_of(const job_spec& job, std::uint64_t key) {
  return {static_cast<std::uint32_t>(row_hash(key) % job.partitions)};
}
/// Rows that a partition of the table keeps and stores together: a power of two, whose values have
/// about 64 KiB, 16 .. 4096. Every slab but the last of a partition has this many.
std::uint64_t slab_rows(const table_spec& table);

// -- partitions --

/// Bytes of values in each partition, one entry a partition. Rows are not known beforehand: a
/// sparse table counts as 1 MiB in each.
std::vector<std::uint64_t> partition_bytes(const job_spec& job);

/// Gives each partition a chain: byte-balanced, and no chain without a partition where there are
/// enough. Moves as few partitions as the balance allows away from where `previous` had them
/// (empty: no previous map). Deterministic.
std::vector<chain_id> make_partition_map(const job_spec& job, std::uint32_t chains,
                                         const std::vector<chain_id>& previous);

} // namespace troupe
