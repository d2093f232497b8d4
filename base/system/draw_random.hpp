// Numbers that nobody else has: of incarnations, of a run's secret.
#pragma once

#include <cstdint>

namespace troupe {

/// A random number, not 0, from the system.
std::uint64_t draw_random();

} // namespace troupe
