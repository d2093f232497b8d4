// The options --record and --replay of every program, and how they begin.
#pragma once

#include "actors/graph/options/options.hpp"
#include "actors/protocol/worker/router.hpp"
#include "actors/roles/server/trace_recorder.hpp"
#include "base/error.hpp"
#include "serialization/job.hpp"

#include <optional>

namespace CLI {
class App;
}

namespace troupe {

/// Declares them in a group of their own, which is returned.
CLI::App* declare_recording(CLI::App& app, run_options& options);

/// Whether they fit the others. Errors: invalid_argument.
result<void> validate_recording(const run_options& options);

/// Makes the directory of --record, if that was given, before the first process starts.
/// Errors: io_failed, in_use, invalid_argument (a job that could not be replayed).
result<void> begin_recording(const run_options& options, const job_spec& job);

/// What a server is told.
std::optional<record_options> recording_of(const run_options& options);
/// What a worker's router is told: the values of a gradient are to be read once, where that is
/// written down.
router_options routing_of(const run_options& options);

} // namespace troupe
