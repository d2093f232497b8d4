// What is left of a run: the report, the exported parameters, and the last lines for the user.
#pragma once

#include "actors/graph/options/options.hpp"
#include "actors/graph/report/run_report.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "serialization/job.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace troupe {

/// `parameters`: one array for each table of the job. Errors: io_failed, invalid_argument.
result<void> export_parameters(const std::filesystem::path& file, const job_spec& job,
                               std::vector<std::vector<float>> parameters);

/// `json`: of run_statistics. Errors: io_failed.
result<void> write_report(const std::filesystem::path& file, const std::string& json);

/// Returns how a run that the user stopped goes on, and what it has not written. `checkpoint`: the
/// newest one; 0: none. `exported`: whether the parameters were.
std::string text_of_stop(std::uint64_t checkpoint, const run_options& options, bool exported);

/// Returns a line for each kill of --kill that did not come about.
std::vector<std::string> lines_of_missed(const std::vector<kill_plan>& kills);

/// Returns the accuracy and the recoveries, each a line where there is something to tell.
std::string summary(const run_statistics& statistics);

} // namespace troupe
