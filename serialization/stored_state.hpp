// A job's state on disks as plain values: the content of checkpoints and of the coordinator's
// store. storage/ writes and reads them.
#pragma once

#include "base/error.hpp"
#include "serialization/ids.hpp"
#include "serialization/job.hpp"
#include "serialization/messages.hpp"
#include "serialization/replication.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

namespace troupe::storage {

/// Names a snapshot that stays with the server, which begins with it after a restart, see
/// storage/local_state.hpp.
struct base_id {
  std::uint64_t sequence = 0; ///< Grows with each snapshot; its log has the same number.
  generation_id history;      ///< The job's generation.
  generation_id generation;   ///< The chain's generation.
  bool recovered = false;     ///< The chain's generation began with all that it had acknowledged
                              ///< before.

  bool operator==(const base_id&) const = default;
};

/// The content of a committed checkpoint.
struct manifest {
  std::uint64_t checkpoint = 0;
  job_spec job;
  generation_id generation;
  std::uint64_t clock = 0; ///< bsp: clocks applied at the cut; 0 otherwise.
  batch_id cursor;         ///< All given-out batches are below it.
  std::vector<checkpoint_part> parts;
};

/// The result of a search for the newest usable checkpoint.
struct checkpoint_search_result {
  std::optional<manifest> newest; ///< Nullopt: no usable checkpoint.
  std::vector<failure> refused;   ///< One for each newer checkpoint that was passed over, with its
                                  ///< name.
};

/// The few numbers that a coordinator must keep. Every write is synced to disk.
struct coordinator_state {
  std::uint64_t term = 0; ///< Starts of a coordinator so far.
  generation_id generation;
  std::uint64_t job = 0; ///< fingerprint; 0: none stored.
  std::vector<shard_id> shard_of;
  std::vector<chain_metadata> chains;
  std::set<server_id> servers;  ///< Servers that should run; empty: as the job began.
  std::set<server_id> draining; ///< Servers that should become empty.
  std::uint64_t committed = 0;  ///< Newest committed checkpoint of the job; 0: none.
  bool rolling_back = false;    ///< Some chains have not begun `generation` yet.
};

} // namespace troupe::storage
