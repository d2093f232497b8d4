// The job that a graph and a command line make together.
#pragma once

#include "actors/graph/graph.hpp"
#include "actors/graph/options/options.hpp"
#include "serialization/job.hpp"

#include <string>

namespace troupe {

/// Named after the program and its data. The same arguments make the same job in every process.
job_spec make_job(const std::string& program, const graph& described, const run_options& options);

/// Says how the graph of this process differs from that of its job, also in the data that it names;
/// empty: not at all.
std::string graph_difference(const job_spec& theirs, const graph& described,
                             const run_options& options);

/// What this host's command line says of `mine` and the job it joined says otherwise; one line for
/// the user, empty where they agree.
std::string overruled(const run_options& options, const job_spec& mine, const job_spec& theirs);

} // namespace troupe
