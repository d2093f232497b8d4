// The job that a graph and a command line make together.
#pragma once

#include "actors/graph/graph.hpp"
#include "actors/graph/options.hpp"
#include "serialization/job.hpp"

#include <string>

namespace troupe {

/// Named after the program and its data. The same arguments make the same job in every process.
job_spec make_job(const std::string& program, const graph& described, const run_options& options);

} // namespace troupe
