// Makes the job of a graph and a command line.
#pragma once

#include "actors/graph/graph.hpp"
#include "actors/graph/options/options.hpp"
#include "serialization/job.hpp"

#include <string>

namespace troupe {

/// Returns the job, named after the program and its data. The same arguments make the same job in
/// every process.
job_spec make_job(const std::string& program, const graph& described, const run_options& options);

/// Returns the difference between the graph of this process and that of its job, including the data
/// that it names; empty if there is none.
std::string graph_difference(const job_spec& theirs, const graph& described,
                             const run_options& options);

/// Returns a line for the user on options of this host that the joined job overrules; empty if
/// there are none. `mine`: this host's job.
std::string overruled(const run_options& options, const job_spec& mine, const job_spec& theirs);

} // namespace troupe
