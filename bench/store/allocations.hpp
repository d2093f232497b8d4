// Counts a program's allocations with operator new, of every form and on every thread. Linking it
// replaces the operators; with sanitizers, which have their own, the counts stay 0.
#pragma once

#include <cstdint>

namespace troupe::bench {

struct allocations {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
};

/// Returns the counts so far.
allocations allocations_now();

} // namespace troupe::bench
