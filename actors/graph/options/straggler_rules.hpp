// Makes the coordinator's rules for slow workers from the options.
#pragma once

#include "actors/graph/options/options.hpp"
#include "actors/protocol/coordinator/straggler_detector.hpp"

#include <optional>

namespace troupe {

/// Returns the strongest measure that keeps the guarantees of the mode.
straggler_measure strongest_possible(const run_options& options);

/// Returns the coordinator's rules; nullopt: workers' speeds are not compared.
std::optional<straggler_options> straggler_rules(const run_options& options);

} // namespace troupe
