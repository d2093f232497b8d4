// The reducer as an actor: a kv in front of the router of a process, for all of its workers.
#pragma once

#include "actors/protocol/worker/reducer.hpp"
#include "actors/roles/worker/router_actor.hpp"
#include "serialization/messages.hpp"

#include "caf/actor_system.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace troupe {

/// Counts the work of reducers. They write it; any thread reads it.
struct reducer_tally {
  /// `workers`: of the job, the backups among them.
  explicit reducer_tally(std::size_t workers) : left_out(workers) {}

  std::atomic<std::uint64_t> sums{0};               ///< Pushes that went on as a sum.
  std::atomic<std::uint64_t> device_sums{0};        ///< Sums that devices made.
  std::atomic<std::uint64_t> pushes_summed{0};      ///< Batches in these.
  std::vector<std::atomic<std::uint64_t>> left_out; ///< Rounds that ended without the worker.
};

/// Adds the tally to a worker's counters. `all`: also the work for all workers of the process,
/// which one of them reports.
void count(const reducer_tally& tally, std::uint32_t worker, bool all, worker_counters& counters);

/// Adds up the pushes of its workers, and lets them share pulls: see reducer. Pushes that name
/// different ranges of a dense table go one by one. Gradients on devices are added up there
/// (device_pushes.hpp); where they fail, pushes go one by one.
///
/// `own_thread`: while it waits for devices, which may take seconds, other actors go on.
///
/// Lifetime: as router_handle; `next` lives as long. Views are handed on.
/// Capacity: the pushes of its workers, and one sum of each unanswered round.
router_handle spawn_reducer(caf::actor_system& system, job_spec job, reducer_options options,
                            router_handle next, std::shared_ptr<reducer_tally> tally,
                            bool own_thread = false);

} // namespace troupe
