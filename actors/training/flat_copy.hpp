// The whole state of a gossip peer as two arrays, as peers send it to the collector and back.
#pragma once

#include "base/buffer.hpp"
#include "base/error.hpp"
#include "serialization/batch_set.hpp"
#include "serialization/channel.hpp"
#include "serialization/job.hpp"
#include "serialization/snapshot.hpp"

#include <cstdint>
#include <vector>

namespace troupe {

/// Returns the elements of all dense tables of a job.
std::uint64_t flat_values(const job_spec& job);
/// Returns the floats of their optimiser state, and two for the count of steps of each block.
std::uint64_t flat_state(const job_spec& job);

/// Values and optimiser state of a job.
struct flat_copy {
  parcel_tensor values; ///< f32[flat_values()]: tables in their order.
  parcel_tensor state;  ///< f32[flat_state()]: block by block, then the counts of steps.
};

/// Returns a copy of images, which hold all blocks of the job.
flat_copy flat_of(const job_spec& job, const std::vector<partition_image>& images,
                  buffer_pool& pool);
/// Returns images whose blocks lie within the copy, with these applied batches. Errors: damaged
/// (the arrays do not fit the job).
result<std::vector<partition_image>> images_of(const job_spec& job, const flat_copy& what,
                                               const batch_set& applied, std::uint64_t version);
/// Returns the mean of copies. Counts of steps are the largest ones. Requires: one copy or more,
/// and all fit the job.
flat_copy mean_of(const job_spec& job, const std::vector<const flat_copy*>& copies,
                  buffer_pool& pool);

/// Returns how far copies are apart: the root of the mean of |copy - mean|^2, over |mean|.
double distance_of(const std::vector<const flat_copy*>& copies, const flat_copy& mean);

/// Convert a set of batches to the floats of a parcel, and back. Errors: damaged.
parcel_tensor tensor_of(const batch_set& batches);
result<batch_set> batches_of(const parcel_tensor& what);

} // namespace troupe
