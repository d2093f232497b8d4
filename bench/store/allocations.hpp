// Counts what a program takes from operator new, of every form and on every thread. Linking it
// replaces the operators; with sanitizers, which have their own, it counts nothing.
#pragma once

#include <cstdint>

namespace troupe::bench {

struct allocations {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
};

/// So far.
allocations allocations_now();

} // namespace troupe::bench
