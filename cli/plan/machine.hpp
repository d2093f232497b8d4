// Measures this machine as a topology: its threads, and the memory between them.
#pragma once

#include "kernels/schedules/topology.hpp"

namespace troupe::planning {

/// Measures for less than a second. Each hardware thread (at least two) is a device, and the memory
/// is the host. A link's rate is measured with one thread that adds one buffer to another. The
/// host's rate is measured with all threads at the same time. The latency is half a wake-up of
/// another thread and back.
kernels::topology measure_machine();

} // namespace troupe::planning
