// Makes the initial state of a job from files: of parameters (--import), and of single tables.
#pragma once

#include "actors/graph/plan.hpp"
#include "actors/tables/initial_values.hpp"
#include "base/error.hpp"
#include "serialization/job.hpp"

#include <filesystem>
#include <string>

namespace troupe {

/// Reads the files of `what.values` into `what.given`, and puts their checksums and that of
/// `what.data_files` into the job. Errors, which name table and file: io_failed, invalid_argument
/// (also a data file that is a pipe or a directory), malformed (also a value that is NaN or
/// infinite), shape_mismatch, damaged.
result<void> read_files(plan& what);

/// Takes the checksums of the launcher's job: for the tables of `mine` that begin with a file's
/// values, and for its data files. So a process of a running job reads no file for them.
void take_checksums(plan& mine, const job_spec& theirs);

/// Writes checkpoint 1 of `job` with its first values and no batch trained. The job then resumes
/// from it. Errors: io_failed, in_use.
result<void> write_first_checkpoint(const std::filesystem::path& checkpoints, const job_spec& job,
                                    const given_values& given);

/// Writes such a checkpoint with the file's tensors as values. Tensors of floats that are no table
/// are an error, and vice versa; other parts of the file are left out. Returns a remark on numbers
/// that were converted, else an empty text. Errors: io_failed, malformed (also a value that is NaN
/// or infinite), shape_mismatch (names the tensor), in_use.
result<std::string> import_parameters(const std::filesystem::path& file,
                                      const std::filesystem::path& checkpoints,
                                      const job_spec& job);

} // namespace troupe
