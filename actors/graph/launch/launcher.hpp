// Runs a job: a session decides, a backend carries out, and the user sees the progress.
#pragma once

#include "actors/graph/launch/backend.hpp"
#include "actors/graph/launch/end_watch.hpp"
#include "actors/graph/plan.hpp"
#include "actors/graph/run.hpp"
#include "base/log.hpp"

#include <string>
#include <vector>

namespace troupe {

/// Runs the job and returns the exit status: 0 the job finished; 1 it failed; 130, 143 the user
/// ended it (Ctrl-C, SIGTERM), after a last checkpoint. Throws run_failed.
/// `command`: the words that the process was started with. `end`: ends the process if code of the
/// program does not return. `make`: makes the backend, which decides the way to run.
int run_launcher(const plan& what, const std::vector<std::string>& command, end_watch& end,
                 const backend_maker& make);

/// Runs the job in this process, without screen and signals, for run(). Returns only when code of
/// the program has returned. Requires: the plan has threads or a simulation. Errors: job_failed,
/// io_failed.
result<report> run_inside(const plan& what, log_sink log, const backend_maker& make);

} // namespace troupe
