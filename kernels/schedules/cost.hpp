// Computes the time of a schedule on a topology, by a simulation of events.
//
// Assumptions:
//   1. A transfer takes the latency of its way (all links on it), then bytes / rate. There is no
//      other cost: adding up is as fast as the bytes arrive.
//   2. A sender does one transfer at a time to the same receiver: the first in the schedule whose
//      dependencies are done. Each transfer pays the latency, which overlaps no other transfer of
//      this pair. Transfers of different pairs run at the same time.
//   3. A transfer loads all links of its way at once (cut-through). Transfers share full-duplex
//      links by direction, half-duplex links, and nodes with a limit, at max-min fair rates
//      (Bertsekas, Gallager 1992, "Data networks", section 6.5.2): no transfer can get more unless
//      a transfer of no higher rate gets less.
//   4. The links carry no other traffic and lose no data, and all devices begin at the same time.
// So the result is a lower bound for a real machine. An executor's loss is the difference.
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
  std::vector<step_times> steps;  ///< In the order of the schedule.
  std::vector<double> link_bytes; ///< For each directed link of the routing.
  std::uint32_t busiest = 0;      ///< The routing's resource that is in use longest.
  double busiest_bytes = 0;       ///< Bytes that cross it.
  double busiest_seconds = 0;     ///< Time of these bytes at its full rate.
};

/// Requires: fault_of(plan) finds no fault; plan.devices == ways.devices(), plan.staging <=
/// ways.hosts().
schedule_cost cost_of(const schedule& plan, const routing& ways, double bytes);

} // namespace troupe::kernels
