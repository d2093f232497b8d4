// What a replica has kept for itself: the newest base, a cut, and the log of what came after.
//
//   DIR/servers/S/chain-K/base-17/  RocksDB of the cut
//   DIR/servers/S/chain-K/log-17    entries since that cut (write_ahead_log.hpp), where the job
//   keeps one
//
// A base is begun together with its log, and is whole later than that: until then the one before
// holds, with both logs.
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
  base_id base;                        ///< The newest one.
  std::vector<partition_image> images; ///< In the order asked for.
  /// In the order in which the replica got them. Some of the first may be in `images` already: its
  /// marks tell.
  std::vector<log_entry> log;
};

/// Largest number of a base or a log that is there; 0: none is, or they cannot be listed.
std::uint64_t newest_kept(const std::filesystem::path& directory, server_id server, chain_id chain);

/// The log of the base with this number. Errors: io_failed.
result<write_ahead_log> begin_log(const std::filesystem::path& directory, server_id server,
                                  chain_id chain, std::uint64_t sequence);

/// Nothing where no base is there. Nothing is changed. Of a bsp job the log has an entry that the
/// images lack, if there is one: values of before the last clock come from applying it.
/// Errors: io_failed, damaged, version_mismatch.
result<std::optional<local_state>> read_kept(const std::filesystem::path& directory,
                                             server_id server, chain_id chain, const job_spec& job,
                                             const std::vector<partition_id>& partitions);

/// The bytes of detail::base_name.
std::string encode(const base_id& what);
/// Errors: damaged (no such bytes, or their checksum does not fit), version_mismatch. Those of the
/// first format do not say whether the generation recovered: then it did not.
result<base_id> decode_base(std::string_view bytes);

} // namespace troupe::storage
