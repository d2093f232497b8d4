// Checks which options fit a job without servers (--sync allreduce).
#pragma once

#include "actors/graph/options/options.hpp"
#include "base/error.hpp"

namespace troupe {

/// Accepts all options without --sync allreduce. Errors: invalid_argument.
result<void> validate_allreduce(const run_options& options);

} // namespace troupe
