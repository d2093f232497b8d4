// A process of a cluster: one role, told by its command line and the launcher's cluster file.
#pragma once

#include "actors/cluster/child_command.hpp"
#include "actors/graph/graph.hpp"
#include "actors/graph/options.hpp"

#include <functional>

namespace troupe {

/// Plays the role until the job stops; returns the process's exit status. `build` is called for
/// workers only: the other roles learn all from the job.
int run_child(const child_identity& who, const run_options& options,
              const std::function<graph()>& build);

} // namespace troupe
