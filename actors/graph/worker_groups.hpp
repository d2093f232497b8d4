// Groups workers by process: `--workers-per-process N` share one, in the order of their indices.
#pragma once

#include "actors/graph/options/options.hpp"
#include "actors/protocol/process_name.hpp"
#include "serialization/ids.hpp"

#include <cstdint>
#include <vector>

namespace troupe {

/// Returns the process of a worker. Workers i and k of this host share one if i / N == k / N. It is
/// named after the first of them.
process_name process_of_worker(const run_options& options, std::uint32_t worker);

/// Returns the members of a process: one, or its workers in ascending order. The first one is
/// `process` itself. The incarnations of others follow from its own, so that the launcher and the
/// process derive the same ones.
std::vector<member_id> members_of(const run_options& options, const member_id& process);

/// Returns the processes of the servers, workers and actors of this host.
std::vector<process_name> processes_here(const run_options& options);

} // namespace troupe
