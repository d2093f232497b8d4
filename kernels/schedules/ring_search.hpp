// Searches for rings (Hamiltonian cycles) in the graph of links between devices.
#pragma once

#include "kernels/schedules/strategies.hpp"
#include "kernels/schedules/topology.hpp"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace troupe::kernels {

/// Returns a ring whose slowest neighbours are as fast as possible, by routing::rate. From each
/// device it follows its fastest way, so it stays within a host before it leaves it.
ring_path widest_ring(const routing& ways);

/// Returns two rings without a common link that use only links between devices, such as NVLink. It
/// takes the pair with the largest sum of rates among the pairs it visits. A ring's rate is that of
/// its slowest link; shares are in proportion to the rates. Nullopt if no two are found. Source:
/// Wang, Li, Liberty, Smola 2018, "Optimal message scheduling for aggregation" (an NVLink mesh is
/// best used as two rings). Cost: the search gives up after a million steps, or 500 first rings.
std::optional<std::pair<ring_path, ring_path>> two_rings(const routing& ways);

} // namespace troupe::kernels
