// Runs the process of one rank of a job without servers (--sync allreduce).
#pragma once

#include "actors/graph/graph.hpp"
#include "actors/graph/launch/child_command.hpp"
#include "actors/graph/launch/cluster_file.hpp"
#include "actors/graph/options/options.hpp"
#include "actors/notice_sink.hpp"
#include "base/log.hpp"

#include <string>

namespace troupe {

/// Trains until the job is done or stopped. Errors: those after which starting this process again
/// would not help.
result<void> run_rank(const child_identity& who, const cluster_file& cluster,
                      const run_options& options, const graph& described, const log_sink& log,
                      const notice_sink& waits);

} // namespace troupe
