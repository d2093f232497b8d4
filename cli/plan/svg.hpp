// A drawing of a plan: the topology with the load of its links, and what each link carries when.
#pragma once

#include "kernels/schedules/planner.hpp"
#include "kernels/schedules/topology.hpp"

#include <string>

namespace troupe::plan {

/// An SVG document. Topology: devices in the lowest row, then by distance from them; the redder a
/// link, the longer in use; the wider, the faster. Timeline: a row for each directed link, the 24
/// busiest ones at most; blue while it carries partial sums, orange while it carries sums.
/// Requires: the plan is not missing.
std::string drawing(const kernels::routing& ways, const kernels::strategy_plan& plan, double bytes);

} // namespace troupe::plan
