// Tries the straggler detector on each way to be slow, and on healthy workers.
#pragma once

#include <cstdint>

namespace troupe::sim {

/// Other detectors show that mistakes of a detector are noticed.
enum class detector_kind : std::uint8_t {
  real,
  oversensitive, ///< Tolerates no slowness: evicts healthy workers.
  passive,       ///< Uses no force: stragglers stay.
};

struct straggler_trial {
  std::uint64_t fleets = 20;        ///< For each case; each fleet is a function of its number.
  double healthy_hours = 100'000.0; ///< Worker-hours in the case of healthy workers.
  unsigned threads = 1;
  detector_kind detector = detector_kind::real;
};

/// Prints a line for each case, and the evictions of its first fleet. Returns true if no healthy
/// worker was evicted, no budget was passed, and each case had enough of its events.
bool try_stragglers(const straggler_trial& trial);

} // namespace troupe::sim
