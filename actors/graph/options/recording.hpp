// Begins the trace of --record, and makes the options of servers and workers for it.
#pragma once

#include "actors/graph/options/options.hpp"
#include "actors/protocol/worker/router.hpp"
#include "actors/roles/server/trace_recorder.hpp"
#include "base/error.hpp"
#include "base/notice.hpp"
#include "serialization/job.hpp"

#include <optional>

namespace troupe {

/// Makes the directory of --record, if that was given, before the first process starts.
/// Errors: io_failed, in_use, invalid_argument (a job that could not be replayed).
result<void> begin_recording(const run_options& options, const job_spec& job);

/// Returns a server's options for its trace; nullopt without --record. `tell`: takes the reason of
/// a trace that ends early, for the console of the launcher.
std::optional<record_options> recording_of(const run_options& options, const notice_sink& tell);
/// Returns the options of a worker's router. With --record the values for a gradient are read only
/// once, as the trace records each read.
router_options routing_of(const run_options& options);

} // namespace troupe
