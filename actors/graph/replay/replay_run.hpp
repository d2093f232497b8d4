// PROGRAM --replay DIR: what replays a record and says whether it came out the same.
#pragma once

#include "actors/graph/graph.hpp"
#include "actors/graph/options/options.hpp"

#include <string>

namespace troupe {

/// Prints what it does; returns the program's exit status.
int run_replay(const std::string& name, const run_options& options, const graph& described);

} // namespace troupe
