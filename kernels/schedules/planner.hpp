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
  /// Chunks are not made smaller. Smaller: more pipelining where latency is low, more steps.
  double chunk_bytes_min = 64 * 1024;
  /// Schedules are not made longer by cutting chunks; bounds the time that planning takes.
  std::size_t steps_max = 12'000;
};

/// One strategy on one topology.
struct strategy_plan {
  std::string name;
  std::string missing;      ///< Why there is none here; all that follows is then empty.
  double whole_seconds = 0; ///< With the largest chunks that the strategy allows: no pipelining.
  double chunk_bytes = 0;   ///< Of the plan.
  schedule plan;            ///< With the best chunk size of those that were tried.
  schedule_cost cost;       ///< Of the plan.
};

/// Every strategy, with chunks cut in 1, 2, 4, ... 128 as long as that pays: central, host, block,
/// ring, ring both ways, two rings, two rings both ways, double tree, hierarchical. Of the last one
/// the fastest pair of what is done inside hosts and between them; the name says which.
/// Requires: bytes > 0.
std::vector<strategy_plan> plan_all_reduce(const routing& ways, double bytes,
                                           const planner_options& options = {});

/// The index of the fastest one; of those within 1 % of it, the one with the fewest steps.
std::size_t choose(const std::vector<strategy_plan>& plans);

} // namespace troupe::kernels
