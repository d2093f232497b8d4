// Whether replayed parameters are those of the run, byte for byte.
#pragma once

#include "base/error.hpp"
#include "serialization/job.hpp"
#include "serialization/snapshot.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace troupe {

/// One array for each table of the job; of sparse tables empty.
using dense_parameters = std::vector<std::vector<float>>;

/// With a file that the run exported. The first difference as a line; empty: there is none.
/// Errors: those of storage::read_tensors.
result<std::string> difference_from_export(const std::filesystem::path& file, const job_spec& job,
                                           const dense_parameters& mine);

/// With the newest checkpoint of the run: optimiser state and rows too. `mine`: of all partitions.
/// Errors: those of storage::newest_good and storage::read, io_failed (there is none).
result<std::string> difference_from_checkpoint(const std::filesystem::path& directory,
                                               const job_spec& job,
                                               const std::vector<partition_image>& mine);

} // namespace troupe
