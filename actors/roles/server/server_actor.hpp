// Runs a server, the last kv of the data path and a member of the cluster. It hosts the replicas
// that the coordinator assigns to it. It loads or copies their partitions, applies pushes and
// passes them on, answers pulls, and hands cuts to its checkpointer.
#pragma once

#include "base/notice.hpp"
#include "actors/checkpointer.hpp"
#include "actors/kv.hpp"
#include "actors/protocol/chain.hpp"
#include "actors/protocol/server/shard.hpp"
#include "actors/roles/server/trace_recorder.hpp"
#include "actors/tables/initial_values.hpp"
#include "actors/tables/server_functions.hpp"
#include "actors/training/keeper_store.hpp"
#include "base/buffer.hpp"
#include "base/clock.hpp"
#include "base/log.hpp"

#include "caf/actor_system.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace troupe {

struct server_options {
  member_id self;
  std::uint64_t job = 0; ///< Fingerprint of the job that this process was started for.
  std::string address{own_process_address}; ///< Where its kv listens for other processes.
  /// Makes senders to the servers that have replicas of the same chains.
  std::function<replica_sink(const member_address&)> to_peer{};
  shard_options shard{};
  chain_options chain{};
  /// Most pushes of asp and ssp tables that are applied in one pass over memory; they waited in the
  /// mailbox together. More: less memory traffic under load, longer until the first of them may be
  /// read.
  std::size_t apply_batch = 1;
  /// Set for a job with an own store: the keeper that has the values.
  std::optional<keeper_options> keeper{};
  /// Directory for local states of its replicas (storage/local_state.hpp); empty: keeps no states.
  std::filesystem::path directory{};
  server_functions functions{}; ///< Those that the job's tables name.
  /// First values of tables that begin with a file's; empty where a checkpoint has them.
  given_values given{};
  /// Versions between two checksums of the values, which the coordinator compares; 0: none.
  std::uint64_t verify_replicas = 0;
  log_sink log{};
  notice_sink waits{};                    ///< Gets notices of tasks that fail at present.
  std::function<void()> works{};          ///< Called when an update is applied; may be null.
  std::optional<record_options> record{}; ///< Nullopt: no trace is written.
  bool own_thread = true; ///< Fills partitions and replays logs on threads of their own.
  std::function<time_point()> boot_clock = boot_now; ///< Tests may replace it.
};

/// Spawns a server, which reports at once.
///
/// Ordering:  pushes of one sender are applied in send order.
/// Lifetime:  until desired_state::stop; requests that are open then fail with peer_lost.
/// Capacity:  open requests: a few for each worker. Values: the job's tables, up to three times
///            while a checkpoint or a copy is made (present, previous of bsp, pinned). Values of a
///            chain that it has left stay for half a minute.
/// `storage`: null if the job keeps no checkpoints.
server_handle spawn_server(caf::actor_system& system, server_options options,
                           coordinator_connector connect, checkpointer storage);

} // namespace troupe
