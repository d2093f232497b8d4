// The process that the user starts for a job without servers (--sync allreduce): starts the ranks
// and again those that end, shows how it goes, judges, and sees the job to its end. The ranks need
// no coordinator: who computes which batch follows from rank and clock.
#pragma once

#include "actors/graph/graph.hpp"
#include "actors/graph/options/options.hpp"

#include <string>
#include <vector>

namespace troupe {

/// As run_launcher().
int run_allreduce_launcher(const std::string& name, run_options options, const graph& described,
                           const std::vector<std::string>& command);

} // namespace troupe
