// Names the measures against a worker that is slower than the others.
#pragma once

#include <cstdint>

namespace troupe {

/// Measures against a worker, by growing force.
enum class straggler_measure : std::uint8_t {
  full,       ///< No measure.
  warned,     ///< The log names the worker; its work stays the same.
  rebalanced, ///< It gives back a part of its work.
  demoted,    ///< No other worker waits for its gradients.
  evicted,    ///< Its incarnation has ended and its work is reassigned; a successor has to wait.
};

} // namespace troupe
