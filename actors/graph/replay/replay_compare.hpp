// Compares replayed parameters with those of the run, byte for byte.
#pragma once

#include "base/error.hpp"
#include "serialization/job.hpp"
#include "serialization/snapshot.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace troupe {

/// One array for each table of the job; empty for a sparse table.
using dense_parameters = std::vector<std::vector<float>>;

/// Compares with a file that the run exported. Returns the first difference as a line; empty: none.
/// Errors: those of storage::read_tensors.
result<std::string> difference_from_export(const std::filesystem::path& file, const job_spec& job,
                                           const dense_parameters& mine);

/// Compares with the newest checkpoint of the run, including optimiser state and rows. `mine`: the
/// images of all partitions. Returns as above.
/// Errors: those of storage::newest_good and storage::read, io_failed (there is no checkpoint).
result<std::string> difference_from_checkpoint(const std::filesystem::path& directory,
                                               const job_spec& job,
                                               const std::vector<partition_image>& mine);

} // namespace troupe
