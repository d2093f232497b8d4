// How a table is cut into blocks, and in which partition each block lies. A pure function of the
// job, so every process computes the same.
#pragma once

#include "serialization/ids.hpp"
#include "serialization/job.hpp"
#include "serialization/messages.hpp"

#include <cstdint>
#include <vector>

namespace troupe {

/// Elements of one block: min(1 MiB, a sixteenth of the table), at least 16 KiB, a multiple of 16
/// elements. Every block but the last has this many.
std::uint64_t block_elements(const table_spec& table);
std::uint64_t block_count(const table_spec& table);
/// Elements [first, first + count) of block `block`.
range block_range(const job_spec& job, table_id table, std::uint64_t block);
/// (fnv1a64(table name) + block) mod job.partitions.
partition_id partition_of(const job_spec& job, table_id table, std::uint64_t block);
/// Bytes of values in each partition, one entry a partition.
std::vector<std::uint64_t> partition_bytes(const job_spec& job);

/// Gives each partition a server: byte-balanced, and moves as few partitions as the balance allows
/// away from where `previous` had them (empty: no previous map). Deterministic.
std::vector<server_id> make_partition_map(const job_spec& job, std::uint32_t servers,
                                          const std::vector<server_id>& previous);

} // namespace troupe
