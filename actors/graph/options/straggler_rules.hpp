// Checks the options for slow workers, and makes the coordinator's rules from them.
#pragma once

#include "actors/graph/options/options.hpp"
#include "actors/protocol/coordinator/straggler_detector.hpp"

#include <optional>

namespace troupe {

/// Checks these options. Errors: invalid_argument.
result<void> validate_stragglers(const run_options& options);

/// Returns the coordinator's rules; nullopt: workers' speeds are not compared.
std::optional<straggler_options> straggler_rules(const run_options& options);

} // namespace troupe
