// Makes the initial state of a job from files: of parameters (--import), and of single tables.
#pragma once

#include "actors/graph/plan.hpp"
#include "actors/tables/initial_values.hpp"
#include "base/error.hpp"
#include "serialization/job.hpp"

#include <filesystem>
#include <string>

namespace troupe {

/// Reads the files of `what.values` into `what.given`, and puts their checksums into the job.
/// Errors, which name the table: io_failed, invalid_argument, malformed (also a value that is NaN
/// or infinite), shape_mismatch, damaged.
result<void> read_values(plan& what);

/// Takes the checksums of the launcher's job for the tables of `mine` that begin with a file's
/// values. So a process of a running job needs no files.
void take_checksums(plan& mine, const job_spec& theirs);

/// Writes checkpoint 1 of `job` with its first values and no batch trained. The job then resumes
/// from it. Errors: io_failed, in_use.
result<void> write_first_checkpoint(const std::filesystem::path& checkpoints, const job_spec& job,
                                    const given_values& given);

/// Writes such a checkpoint with the file's tensors as values. Tensors that are no table are an
/// error, and vice versa. Returns a remark on numbers that were converted, else an empty text.
/// Errors: io_failed, malformed (also a value that is NaN or infinite), shape_mismatch (names the
/// tensor), in_use.
result<std::string> import_parameters(const std::filesystem::path& file,
                                      const std::filesystem::path& checkpoints,
                                      const job_spec& job);

} // namespace troupe
