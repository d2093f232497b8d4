// The coordinator as an actor: carries out the effects of coordinator.hpp.
#pragma once

#include "actors/checkpointer.hpp"
#include "actors/kv.hpp"
#include "actors/protocol/coordinator/coordinator.hpp"
#include "storage/coordinator_store.hpp"

#include "caf/actor_system.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace troupe {

struct coordinator_setup {
  job_spec job;
  coordinator_options options;
  /// Null: the state is not persisted (one process).
  std::shared_ptr<storage::coordinator_store> store;
  std::uint64_t last_checkpoint = 0;
  /// Between two committed checkpoints that are read again, one after the other; 0: none is.
  std::chrono::milliseconds scrub_interval{0};
  std::function<void(std::string)> log; ///< Gets each event, one line.
};

/// `storage`: null where the job keeps no checkpoints. Errors: io_failed, damaged and fenced from
/// the store.
///
/// Ordering:  none needed: reports are whole states with sequence numbers.
/// Lifetime:  until the job has stopped and everyone was told, or told to exit; ends with `fenced`
///            when the store says that it does not lead any more.
/// Capacity:  one report a member is kept; members report at most every 100 ms when idle.
result<coordinator_service> spawn_coordinator(caf::actor_system& system, coordinator_setup setup,
                                              checkpointer storage);

} // namespace troupe
