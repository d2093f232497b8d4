// Runs the coordinator as an actor, which carries out the decisions of coordinator.hpp.
#pragma once

#include "actors/checkpointer.hpp"
#include "actors/kv.hpp"
#include "actors/protocol/coordinator/coordinator.hpp"
#include "base/log.hpp"
#include "storage/coordinator_store.hpp"

#include "caf/actor_system.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace troupe {

struct coordinator_setup {
  job_spec job;
  coordinator_options options{};
  /// Null: no state is persisted (one process).
  std::shared_ptr<storage::coordinator_store> store{};
  std::uint64_t last_checkpoint = 0;
  /// Time between two scrubs, each of which reads one committed checkpoint again; 0: no scrubs.
  std::chrono::milliseconds scrub_interval{0};
  log_sink log; ///< Gets each event, one line.
  /// Called, perhaps again, when a batch is done under this coordinator's lead; may be null.
  std::function<void()> works{};
};

/// Spawns the coordinator. `storage`: null if the job keeps no checkpoints. Errors: io_failed,
/// damaged and fenced from the store.
///
/// Ordering:  none needed: a status is a member's whole state and has a sequence number.
/// Lifetime:  until the job has stopped and its members had time to hear it, or until an exit
///            message. It ends with `fenced` when the store says that it does not lead any more.
/// Capacity:  keeps one status a member; an idle member reports at most every 100 ms.
result<coordinator_service> spawn_coordinator(caf::actor_system& system, coordinator_setup setup,
                                              checkpointer storage);

} // namespace troupe
