// Runs the process of one rank of a job without servers.
#pragma once

#include "actors/graph/launch/cluster_file.hpp"
#include "actors/graph/launch/role_process.hpp"
#include "actors/graph/plan.hpp"
#include "actors/graph/processes/child_command.hpp"

namespace troupe {

/// Trains until the job is done or stopped. Errors: those after which starting this process again
/// would not help.
result<void> run_rank(const child_identity& who, const cluster_file& cluster, const plan& what,
                      const rank_voice& voice);

} // namespace troupe
