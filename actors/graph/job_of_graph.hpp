// The job that a graph and a command line make together.
#pragma once

#include "actors/graph/graph.hpp"
#include "actors/graph/options.hpp"
#include "serialization/job.hpp"

#include <string>

namespace troupe {

/// `name`: of the program. The same arguments make the same job in every process.
job_spec make_job(const std::string& name, const graph& described, const run_options& options);

} // namespace troupe
