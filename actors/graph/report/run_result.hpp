// Writes the results of a run: the report, the exported parameters, the last lines for the user.
#pragma once

#include "actors/graph/options/options.hpp"
#include "actors/graph/report/run_report.hpp"
#include "base/error.hpp"
#include "serialization/job.hpp"
#include "serialization/job_event.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// Writes the parameters: one array for each table of the job. Errors: io_failed, invalid_argument.
result<void> export_parameters(const std::filesystem::path& file, const job_spec& job,
                               std::vector<std::vector<float>> parameters);

/// Returns a text on a stopped run: how to continue it, and the file that was not written.
/// `checkpoint`: the newest one; 0: none. `is_saved`: it has all work. `exported`: the parameters
/// were exported.
std::string text_of_stop(std::uint64_t checkpoint, bool is_saved, const run_options& options,
                         bool exported);

/// Returns the last event of a run, with the reason of a failure.
job_event end_of_run(int status, const std::optional<failure>& reason);

/// Returns "accuracy 0.9120, rmse 0.9384"; the loss if there is neither accuracy nor measure.
std::string text_of(const evaluation& found);

/// Returns a line for the evaluation and one for the recoveries; each is left out if there is none.
std::string summary(const run_statistics& statistics);

} // namespace troupe
