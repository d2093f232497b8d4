// This machine as a topology: its threads, and the memory between them.
#pragma once

#include "kernels/schedules/topology.hpp"

namespace troupe::plan {

/// Each hardware thread (two at least) is a device on one host, the memory. Measured now, in less
/// than a second: a link's rate is that of one thread which adds one buffer to another, the host's
/// that of all threads at the same time; latency is half a wake-up of another thread and back.
kernels::topology measure_machine();

} // namespace troupe::plan
