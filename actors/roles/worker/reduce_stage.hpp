// The stage that adds up the pushes of a process's workers and lets them share pulls (reducer.hpp).
#pragma once

#include "actors/protocol/worker/reducer.hpp"
#include "actors/protocol/worker/stage.hpp"
#include "serialization/job.hpp"
#include "serialization/messages.hpp"

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

/// Pushes that name different ranges of a dense table go one by one. Gradients on devices are added
/// up there (device_pushes.hpp), which blocks for as long as the devices take. If the devices fail,
/// the pushes go one by one.
///
/// Capacity: the pushes of its workers, and one sum for each round without a reply so far.
std::unique_ptr<stage_decider> make_reduce_stage(const job_spec& job, reducer_options options,
                                                 std::shared_ptr<reducer_tally> tally);

} // namespace troupe
