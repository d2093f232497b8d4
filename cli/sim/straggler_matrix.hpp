// What the detector of stragglers makes of each way to be slow, and of healthy workers.
#pragma once

#include <cstdint>

namespace troupe::sim {

/// Another detector, to show that what it does wrong is noticed.
enum class detector_kind : std::uint8_t {
  real,
  oversensitive, ///< Tolerates nothing: puts out healthy workers.
  passive,       ///< Uses no force: stragglers stay.
};

struct straggler_trial {
  std::uint64_t fleets = 20;        ///< Of each case; each a function of its number.
  double healthy_hours = 100'000.0; ///< Of workers, in the case of healthy ones.
  unsigned threads = 1;
  detector_kind detector = detector_kind::real;
};

/// Prints a line for each case, and who was out when in its first fleet. Whether all was as it
/// should be: nobody healthy out, no budget passed, and enough of what the cases are for.
bool try_stragglers(const straggler_trial& trial);

} // namespace troupe::sim
