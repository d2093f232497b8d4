// Runs a process of a cluster: one role, given by its command line and the launcher's cluster file.
#pragma once

#include "base/notice.hpp"
#include "actors/graph/launch/cluster_file.hpp"
#include "actors/graph/plan.hpp"
#include "actors/graph/processes/child_command.hpp"
#include "base/log.hpp"

#include <functional>
#include <string>

namespace troupe {

/// The ways in which a rank's process reports to the launcher.
struct rank_voice {
  log_sink log;
  notice_sink waits;
  std::function<void()> works; ///< To be called when a clock is done; it may be called again.
};

/// Trains as one rank of a job without servers until the job is done or stopped. Errors: those
/// after which this process is not to be started again.
using rank_runner =
  std::function<result<void>(const child_identity& who, const cluster_file& cluster,
                             const plan& what, const rank_voice& voice)>;

/// Plays the role until the job stops, and ends the process with its exit status. `functions`:
/// those of the program. `lowered` is called for workers and for the server of an own store; for
/// the others the cluster file is enough. `run_rank`: plays the role instead if the workers' store
/// is an all-reduce.
int run_child(const child_identity& who, const run_options& options,
              const server_functions& functions, const std::function<plan()>& lowered,
              const rank_runner& run_rank);

} // namespace troupe
