// How long a schedule takes on a topology: a simulation of events.
//
// Assumptions:
//   1. A transfer takes the latency of its way (all links on it), then bytes / rate; there is no
//      other cost: adding up is as fast as the bytes come.
//   2. A sender does one transfer at a time to the same receiver: of those whose dependencies are
//      done, the first in the schedule. Latency is paid by each and overlaps nothing of this pair.
//      Transfers of different pairs run at the same time.
//   3. A transfer loads all links of its way at once (cut-through). Those that share a link, a
//      direction of it where it is full duplex, or a node with a limit, have max-min fair rates
//      (Bertsekas, Gallager 1992, "Data networks", section 6.5.2): none can get more without one
//      that has no more getting less.
//   4. Nothing else uses the links, nothing is lost, and all devices begin at the same time.
// So it is a lower bound for a real machine: the difference is what an executor loses.
#pragma once

#include "kernels/schedules/schedule.hpp"
#include "kernels/schedules/topology.hpp"

#include <cstdint>
#include <vector>

namespace troupe::kernels {

struct step_times {
  double begin = 0, end = 0; ///< Seconds from the start, latency included.
};

struct schedule_cost {
  double seconds = 0;
  std::vector<step_times> steps;  ///< As in the schedule.
  std::vector<double> link_bytes; ///< By directed link of the routing.
  std::uint32_t busiest = 0;      ///< The resource of the routing that is in use longest:
  double busiest_bytes = 0;       ///< what crosses it,
  double busiest_seconds = 0;     ///< which takes so long at its full rate.
};

/// Requires: no fault_of(plan); plan.devices == ways.devices(), plan.staging <= ways.hosts().
schedule_cost cost_of(const schedule& plan, const routing& ways, double bytes);

} // namespace troupe::kernels
