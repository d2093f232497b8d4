// Topologies from JSON files. docs/topology.md has the format.
#pragma once

#include "base/error.hpp"
#include "kernels/schedules/topology.hpp"

#include <string>

namespace troupe::plan {

/// `where` names the text in messages.
/// Errors: malformed, for what is not JSON, has unknown or missing keys or names, or cannot be used
/// (kernels::problem_of).
result<kernels::topology> parse_topology(const std::string& text, const std::string& where);

/// A preset, `machine` (measured now), or a file, in this order.
/// Errors: invalid_argument where it is none of them; io_failed; malformed.
result<kernels::topology> find_topology(const std::string& name_or_file);

} // namespace troupe::plan
