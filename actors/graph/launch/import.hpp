// Makes the initial state of a job from a file of parameters.
#pragma once

#include "base/error.hpp"
#include "serialization/job.hpp"

#include <filesystem>
#include <string>

namespace troupe {

/// Writes checkpoint 1 of `job` with the file's tensors as values and no batch trained. The job
/// then resumes from it. Tensors that are no table are an error, and vice versa. Returns a remark
/// on numbers that were converted, else an empty text.
/// Errors: io_failed, malformed (also a value that is NaN or infinite), shape_mismatch (names the
/// tensor), in_use.
result<std::string> import_parameters(const std::filesystem::path& file,
                                      const std::filesystem::path& checkpoints,
                                      const job_spec& job);

} // namespace troupe
