// What is left of a run: the report, the exported parameters, and the last lines for the user.
#pragma once

#include "actors/clock.hpp"
#include "actors/graph/run_report.hpp"
#include "serialization/error.hpp"
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

/// How a run that the user stopped goes on. `checkpoint`: the newest one; 0: none.
std::string how_to_continue(std::uint64_t checkpoint, const std::filesystem::path& directory);

/// Accuracy and recoveries, each a line where there is something to tell.
std::string summary(const run_statistics& statistics, time_point now);

} // namespace troupe
