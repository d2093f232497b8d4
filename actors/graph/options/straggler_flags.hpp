// The options that say what is done about slow workers, and about workers that may become slow.
#pragma once

#include "actors/graph/options/options.hpp"
#include "actors/protocol/coordinator/straggler_detector.hpp"

#include <optional>

namespace troupe {

/// What is common in `group`, what is for experiments in `trials`.
void declare_stragglers(CLI::App& group, CLI::App& trials, run_options& options);

/// Errors: invalid_argument.
result<void> validate_stragglers(const run_options& options);

/// For the coordinator. Nullopt: nobody is compared.
std::optional<straggler_options> straggler_rules(const run_options& options);

} // namespace troupe
