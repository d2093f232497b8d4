// Builds the workers of one process and the stages between them and the store. Threads, processes
// and simulations build them here.
#pragma once

#include "actors/graph/plan.hpp"
#include "actors/kv.hpp"
#include "actors/roles/worker/worker_actor.hpp"
#include "actors/training/keeper_store.hpp"
#include "base/log.hpp"

#include "caf/actor.hpp"
#include "caf/actor_system.hpp"

#include <chrono>
#include <functional>
#include <vector>

namespace troupe {

/// The parts of which the workers of a process are built. They are borrowed until build_workers()
/// returns.
struct worker_setup {
  caf::actor_system& system;
  const plan& what;
  const job_spec& job; ///< The launcher's, which may have other rates than `what`.
  log_sink log;
  std::function<coordinator_connector(const member_id&)> connector_of;
  std::function<void()> works{}; ///< Called when a batch of any of the workers is acknowledged.
  /// Completes the options of the first worker, which reports the figures that all share.
  std::function<void(worker_options&)> first{};
  /// Set in a simulation, which has one thread: returns the times to add to steps that are slowed
  /// by this time.
  std::function<std::function<std::chrono::nanoseconds()>(std::chrono::milliseconds)> step_times{};
};

struct built_workers {
  std::vector<caf::actor> workers;
  std::vector<caf::actor> stages; ///< In the order in which they were spawned.
};

/// Returns the options of an own store's keeper, for the server that has it.
keeper_options keeper_of(const plan& what, const log_sink& log);

/// Spawns the workers of one process. `store`: the process's own.
built_workers build_workers(const worker_setup& setup, const std::vector<member_id>& group,
                            store_client store);

} // namespace troupe
