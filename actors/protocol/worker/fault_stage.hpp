// Loses, repeats and delays requests on purpose, for tests.
#pragma once

#include "actors/protocol/worker/stage.hpp"

#include <chrono>
#include <cstdint>
#include <memory>

namespace troupe {

struct fault_rates {
  double lost = 0;     ///< Share of the pushes that are refused before the store sees them.
  double repeated = 0; ///< Share of the applied pushes whose receipt is lost: they come again.
  std::chrono::milliseconds delay{0}; ///< Time for which each request is held.
};

/// Counts "lost" and "repeated". `seed`: of its draws.
std::unique_ptr<stage_decider> make_fault_stage(const fault_rates& rates, std::uint64_t seed);

} // namespace troupe
