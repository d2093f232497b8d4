// Draws a plan: the topology with the load of its links, and what each link carries when.
#pragma once

#include "kernels/schedules/planner.hpp"
#include "kernels/schedules/topology.hpp"

#include <string>

namespace troupe::planning {

/// Returns an SVG document with a topology and a timeline. Requires: the plan is not missing.
///
/// In the topology devices are in the lowest row, other nodes above by distance from them. A redder
/// link is longer in use, a wider one is faster. The timeline has a row for each directed link, the
/// 24 busiest ones at most. A bar is blue for partial sums and orange for sums.
std::string drawing(const kernels::routing& ways, const kernels::strategy_plan& plan, double bytes);

} // namespace troupe::planning
