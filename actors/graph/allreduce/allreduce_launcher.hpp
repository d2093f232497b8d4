// Starts the ranks of a job without servers (--sync allreduce), restarts those that end, shows the
// progress, evaluates, and sees the job to its end. It is the process that the user starts. Ranks
// need no coordinator: rank and clock determine the batch that a rank computes.
#pragma once

#include "actors/graph/launch/end_watch.hpp"
#include "actors/graph/plan.hpp"

#include <string>
#include <vector>

namespace troupe {

/// Runs the job. Arguments, result and errors are those of run_launcher().
int run_allreduce_launcher(const plan& what, const std::vector<std::string>& command,
                           end_watch& end);

} // namespace troupe
