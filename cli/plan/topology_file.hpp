// Reads topologies from JSON files. docs/reference/topology.md has the format.
#pragma once

#include "base/error.hpp"
#include "kernels/schedules/topology.hpp"

#include <string>

namespace troupe::planning {

/// Parses `text`; `where` names it in messages.
/// Errors: malformed if it is not JSON, has unknown or missing keys or names, or cannot be used
/// (kernels::problem_of).
result<kernels::topology> parse_topology(const std::string& text, const std::string& where);

/// Returns a preset, `machine` (measured now), or a file, tried in this order.
/// Errors: invalid_argument if it is none of them; io_failed; malformed.
result<kernels::topology> find_topology(const std::string& name_or_file);

} // namespace troupe::planning
