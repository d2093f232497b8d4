// Runs storage/ as an actor: the blocking work of checkpoints, on a thread of its own.
#pragma once

#include "actors/kv.hpp"
#include "storage/checkpoint_directory.hpp"
#include "storage/cut.hpp"
#include "storage/manifest.hpp"
#include "storage/local_state.hpp"

#include "caf/actor_system.hpp"

#include <filesystem>
#include <memory>

namespace troupe {

struct checkpointer_options {
  std::filesystem::path directory; ///< Made if absent.
  server_id server = {};           ///< The server whose cuts it writes.
  std::size_t keep = 3;            ///< Committed checkpoints that commit keeps. At least 1.
};

} // namespace troupe

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::checkpoint_part)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::storage::cut)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::storage::checkpoint_search_result)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::storage::manifest)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::shard_id)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::job_spec)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(std::shared_ptr<troupe::storage::local_state>)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(std::vector<std::uint64_t>)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(std::vector<troupe::partition_id>)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(std::vector<troupe::partition_image>)

namespace troupe {

/// ~~~
/// interface checkpointer {
///   // Writes and verifies a shard's cut, or keeps it for the server. Writes only blocks and slabs
///   // that changed since the last cut.
///   // errors:     io_failed, damaged, in_use. No part of the cut remains.
///   // idempotent: yes.
///   (write_atom, storage::cut) -> checkpoint_part
///
///   // Reads partitions of committed checkpoint `number`.
///   // errors:     io_failed, damaged, wrong_job.
///   // idempotent: yes.
///   (read_atom, uint64_t number, job_spec, vector<partition_id>) -> vector<partition_image>
///
///   // Reads the local state that the server kept of a shard; null: none.
///   // errors:     io_failed, damaged, version_mismatch.
///   // idempotent: yes.
///   (read_atom, shard_id, job_spec, vector<partition_id>) -> shared_ptr<storage::local_state>
///
///   // Finds the newest checkpoint that is committed and undamaged.
///   // unreadable: numbers that a server could not read; they are passed over.
///   // errors:     io_failed, wrong_job.
///   // idempotent: yes.
///   (find_atom, job_spec, vector<uint64_t> unreadable) -> storage::checkpoint_search_result
///
///   // Commits a checkpoint, then removes those beyond options::keep.
///   // reply:      its number.
///   // errors:     io_failed.
///   // idempotent: yes.
///   (commit_atom, storage::manifest) -> uint64_t
///
///   // Reads one committed checkpoint again: the next newer one each time, then the oldest.
///   // reply:      its number; 0: there is none.
///   // errors:     io_failed, damaged.
///   (scrub_atom) -> uint64_t
/// }
/// ~~~
///
/// Ordering:  one request at a time, in order of arrival.
/// Lifetime:  until its last handle is dropped; a write under way is finished first.
/// Capacity:  the mailbox; a server sends one cut at a time.
using checkpointer =
  caf::typed_actor<caf::replies_to<write_atom, storage::cut>::with<checkpoint_part>,
                   caf::replies_to<read_atom, std::uint64_t, job_spec,
                                   std::vector<partition_id>>::with<std::vector<partition_image>>,
                   caf::replies_to<read_atom, shard_id, job_spec, std::vector<partition_id>>::with<
                     std::shared_ptr<storage::local_state>>,
                   caf::replies_to<find_atom, job_spec, std::vector<std::uint64_t>>::with<
                     storage::checkpoint_search_result>,
                   caf::replies_to<commit_atom, storage::manifest>::with<std::uint64_t>,
                   caf::replies_to<scrub_atom>::with<std::uint64_t>>;

/// Longest time of one request: reading and checking a whole checkpoint.
constexpr std::chrono::minutes storage_timeout{10};

checkpointer spawn_checkpointer(caf::actor_system& system, checkpointer_options options);

} // namespace troupe
