// Which workers share a process: `--workers-per-process N` of them, in the order of their indices.
#pragma once

#include "actors/graph/options/options.hpp"
#include "actors/process_name.hpp"
#include "serialization/ids.hpp"

#include <cstdint>
#include <vector>

namespace troupe {

/// Workers i and k may share one where i / N == k / N; it is called after the first of them that is
/// on this host.
process_name process_of_worker(const run_options& options, std::uint32_t worker);

/// The workers of this process, itself first. Who starts it and it itself know all of their
/// incarnations: those behind the first one's, in turn.
std::vector<member_id> workers_of(const run_options& options, const member_id& process);

/// The servers and workers that run on this host, by their processes.
std::vector<process_name> processes_here(const run_options& options);

} // namespace troupe
