// Reads partitions out of a committed checkpoint.
#pragma once

#include "base/error.hpp"
#include "serialization/job.hpp"
#include "storage/cut.hpp"

#include <cstdint>
#include <filesystem>
#include <vector>

namespace troupe::storage {

/// Reads the given partitions out of a committed checkpoint, from all servers' parts. Verifies
/// checksums while reading; does not change the checkpoint's folder. Returns the partitions in the
/// given order. Each has every block of the job's layout, ordered by table and block, and all its
/// slabs of rows, ordered by table and slab. Errors: io_failed, damaged, wrong_job.
result<std::vector<partition_image>> read(const std::filesystem::path& directory,
                                          std::uint64_t checkpoint, const job_spec& job,
                                          const std::vector<partition_id>& partitions);

} // namespace troupe::storage
