// Runs PROGRAM --replay DIR: replays a trace and reports whether the result is the same.
#pragma once

#include "actors/graph/graph.hpp"
#include "actors/graph/options/options.hpp"

#include <string>

namespace troupe {

/// Replays and prints its progress. Returns the program's exit status.
int run_replay(const std::string& name, const run_options& options, const graph& described);

} // namespace troupe
