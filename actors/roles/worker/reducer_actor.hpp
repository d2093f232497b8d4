// Runs the reducer as an actor: a kv in front of a process's router, for all of its workers.
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

/// Counts the work of reducers, which write it. Any thread may read it.
struct reducer_tally {
  /// `workers`: number of workers of the job, backup workers included.
  explicit reducer_tally(std::size_t workers) : left_out(workers) {}

  std::atomic<std::uint64_t> sums{0};               ///< Sums that were passed on.
  std::atomic<std::uint64_t> device_sums{0};        ///< Sums that devices computed.
  std::atomic<std::uint64_t> pushes_summed{0};      ///< Pushes in all sums.
  std::vector<std::atomic<std::uint64_t>> left_out; ///< By worker: rounds that ended without it.
};

/// Fills in the reducer's counters for a worker's status. `all`: with the reducer's totals, which
/// only one of its workers reports.
void count(const reducer_tally& tally, std::uint32_t worker, bool all, worker_counters& counters);

/// Spawns a reducer, which adds up its workers' pushes and lets the workers share pulls. Pushes
/// that name different ranges of a dense table go one by one. Gradients on devices are added up
/// there (device_pushes.hpp); if the devices fail, the pushes go one by one.
///
/// `own_thread`: lets other actors go on while it waits for devices, which may take seconds.
///
/// Lifetime: as router_handle; `next` lives as long. Views are passed on.
/// Capacity: the pushes of its workers, and one sum for each round without a reply so far.
router_handle spawn_reducer(caf::actor_system& system, job_spec job, reducer_options options,
                            router_handle next, std::shared_ptr<reducer_tally> tally,
                            bool own_thread = false);

} // namespace troupe
