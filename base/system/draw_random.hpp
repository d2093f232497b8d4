// Draws unique numbers for incarnations and for a run's secret.
#pragma once

#include <cstdint>

namespace troupe {

/// Returns a random number, not 0, from the system.
std::uint64_t draw_random();

} // namespace troupe
