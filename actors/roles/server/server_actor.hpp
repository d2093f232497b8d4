// A server: the kv that holds values, and a member of the cluster. It hosts the replicas that
// it is told to: loads or copies their partitions, applies pushes and passes them on, answers
// pulls, and hands cuts to its checkpointer.
#pragma once

#include "actors/checkpointer.hpp"
#include "actors/kv.hpp"
#include "actors/notice_sink.hpp"
#include "actors/protocol/chain.hpp"
#include "actors/protocol/server/shard.hpp"
#include "actors/roles/server/trace_recorder.hpp"
#include "base/buffer.hpp"
#include "base/clock.hpp"

#include "caf/actor_system.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace troupe {

struct server_options {
  member_id self;
  std::uint64_t job = 0; ///< fingerprint of the job that this process was started for.
  std::string address;   ///< Where other processes reach its kv; empty within one process.
  /// Finds the servers that have replicas of the same chains.
  std::function<replica_sink(const server_address&)> to_peer{};
  shard_options shard{};
  chain_options chain{};
  /// Pushes of asp and ssp tables that wait in the mailbox together are applied in one pass over
  /// memory, at most so many. More: less memory traffic under load, longer until the first of them
  /// may be read.
  std::size_t apply_batch = 1;
  /// Where it keeps states of its replicas for itself (storage/local_state.hpp); empty: nowhere.
  std::filesystem::path directory{};
  std::function<void(const std::string&)> log{}; ///< Lines for a person; null: for nobody.
  notice_sink waits{};                           ///< What it cannot do for now.
  std::optional<record_options> record{};        ///< Nullopt: what it applies is not written down.
  bool own_thread = true; ///< Fills fresh partitions on a thread of their own.
  std::function<time_point()> boot_clock = boot_now; ///< A test may stand in for it.
};

/// A kv, a replica_sink and a member.
///
/// Ordering:  pushes of one sender are applied in send order.
/// Lifetime:  until desired_state::stop; open requests then fail with peer_lost.
/// Capacity:  open requests: each worker keeps a few; values: the job's tables, up to three times
///            while a checkpoint or a copy is made (present, previous of bsp, pinned); those of a
///            chain in which it has no part any more for half a minute.
using server_handle = kv_service::extend_with<replica_sink>::extend<caf::reacts_to<desired_state>>;

/// `storage`: null where the job keeps no checkpoints. The server begins to report at once.
server_handle spawn_server(caf::actor_system& system, server_options options,
                           coordinator_connector connect, checkpointer storage);

} // namespace troupe
