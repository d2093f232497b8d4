// Declares the options for slow workers, and for workers that may become slow.
#pragma once

#include "actors/graph/options/options.hpp"
#include "actors/protocol/coordinator/straggler_detector.hpp"

#include <optional>

namespace troupe {

/// Declares the common options in `group`, and those for experiments in `trials`.
void declare_stragglers(CLI::App& group, CLI::App& trials, run_options& options);

/// Checks these options. Errors: invalid_argument.
result<void> validate_stragglers(const run_options& options);

/// Returns the coordinator's rules; nullopt: workers' speeds are not compared.
std::optional<straggler_options> straggler_rules(const run_options& options);

} // namespace troupe
