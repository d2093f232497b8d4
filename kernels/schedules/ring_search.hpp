// Search for rings (Hamiltonian cycles) in the graph of links between devices.
#pragma once

#include "kernels/schedules/strategies.hpp"
#include "kernels/schedules/topology.hpp"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace troupe::kernels {

/// A ring whose slowest neighbours are as fast as possible, by routing::rate; from each device it
/// goes on over its fastest way, so it stays within a host before it leaves it.
ring_path widest_ring(const routing& ways);

/// Two rings that have no link in common and use only links between devices, as NVLink: of all such
/// pairs that were looked at the one with the largest sum of rates (a ring's rate is that of its
/// slowest link). Their shares are in proportion to the rates. None where there are no two.
/// Source: Wang, Li, Liberty, Smola 2018, "Optimal message scheduling for aggregation" (that an
/// NVLink mesh is best used as two rings). Cost: the search gives up
/// after a million steps, or 500 first rings.
std::optional<std::pair<ring_path, ring_path>> two_rings(const routing& ways);

} // namespace troupe::kernels
