// Runs PROGRAM --replay DIR: replays a trace and reports whether the result is the same.
#pragma once

#include "actors/graph/plan.hpp"

namespace troupe {

/// Replays and prints its progress. Returns the program's exit status.
int run_replay(const plan& what);

} // namespace troupe
