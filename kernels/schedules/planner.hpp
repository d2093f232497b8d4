// Picks the strategy and the chunk size of an all-reduce for a topology, by the cost model.
#pragma once

#include "kernels/schedules/cost.hpp"
#include "kernels/schedules/schedule.hpp"
#include "kernels/schedules/topology.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe::kernels {

struct planner_options {
  /// Lower bound of chunks. Smaller: more pipelining where latency is low, more steps.
  double chunk_bytes_min = 64 * 1024;
  /// Upper bound of steps when chunks are cut; limits the time of planning.
  std::size_t steps_max = 12'000;
};

/// One strategy on one topology.
struct strategy_plan {
  std::string name;
  std::string missing;      ///< Why it does not exist here; the fields below are then empty.
  double whole_seconds = 0; ///< With the largest chunks that the strategy allows: no pipelining.
  double chunk_bytes = 0;   ///< Size of a chunk of `plan`.
  schedule plan;            ///< With the best chunk size that was tried.
  schedule_cost cost;       ///< Cost of `plan`.
};

/// Plans every strategy, with chunks cut in 1, 2, 4, ... 128 while that pays: central, host, block,
/// ring, ring both ways, two rings, two rings both ways, double tree, hierarchical. For the last it
/// takes the fastest pair of strategies inside hosts and between them; the name tells which.
/// Requires: bytes > 0.
std::vector<strategy_plan> plan_all_reduce(const routing& ways, double bytes,
                                           const planner_options& options = {});

/// Returns the index of the plan with the fewest steps among those within 1 % of the fastest.
std::size_t choose(const std::vector<strategy_plan>& plans);

} // namespace troupe::kernels
