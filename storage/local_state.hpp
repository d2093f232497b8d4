// A replica's local state: the newest snapshot, called base, and the write-ahead log since then.
//
//   DIR/servers/S/chain-K/base-17/  RocksDB of the snapshot
//   DIR/servers/S/chain-K/log-17    entries since that snapshot (write_ahead_log.hpp), if the job
//   keeps a
//                                   log
//
// A base begins together with its log and becomes whole later. Until then the base before it is
// valid, with both logs.
#pragma once

#include "base/error.hpp"
#include "serialization/job.hpp"
#include "serialization/replication.hpp"
#include "storage/cut.hpp"
#include "storage/write_ahead_log.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::storage {

struct local_state {
  base_id base;                        ///< The newest base.
  std::vector<partition_image> images; ///< In the order of the requested partitions.
  /// Entries in the order in which the replica received them. The first ones may be in `images`
  /// already: its `applied` tell.
  std::vector<log_entry> log;
};

/// Returns the largest number of a base or a log; 0 if there is none or they cannot be listed.
std::uint64_t newest_kept(const std::filesystem::path& directory, server_id server, shard_id shard);

/// Creates the log of the base with this number. Errors: io_failed.
result<write_ahead_log> begin_log(const std::filesystem::path& directory, server_id server,
                                  shard_id shard, std::uint64_t sequence);

/// Reads the newest base and its log; nullopt if there is no base. Changes no files. For a bsp job,
/// the log keeps an entry that the images lack, if there is one: applying it gives the values from
/// before the last clock. Errors: io_failed, damaged, version_mismatch.
result<std::optional<local_state>> read_kept(const std::filesystem::path& directory,
                                             server_id server, shard_id shard, const job_spec& job,
                                             const std::vector<partition_id>& partitions);

/// Returns the content of the file detail::base_name.
std::string encode(const base_id& what);
/// Reads that content. In the first format the generation counts as not recovered. Errors: damaged
/// (other bytes, or a wrong checksum), version_mismatch.
result<base_id> decode_base(std::string_view bytes);

} // namespace troupe::storage
