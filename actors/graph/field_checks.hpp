// Checks the fields of a graph's nodes: whether given options have an effect on them, and whether
// the values that a program set are in their ranges.
#pragma once

#include "actors/graph/options/fields.hpp"
#include "base/error.hpp"

namespace troupe {

struct plan; // actors/graph/plan.hpp

/// Checks that the graph has each given option. Errors: invalid_argument.
result<void> check_effects(const run_options& asked, const plan& made,
                           const field_table& table = all_fields());

/// Checks the values of the graph's nodes; the command line checks its own. Errors:
/// invalid_argument.
result<void> check_ranges(const plan& made, const field_table& table = all_fields());

} // namespace troupe
