// Adds up several pushes: the slots of a bsp clock, so that one gradient goes along the chain
// instead of one for each worker, or the pushes of the workers of one process.
#pragma once

#include "base/buffer.hpp"
#include "serialization/job.hpp"
#include "serialization/push_pull.hpp"

#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace troupe {

/// Returns the sum of these pushes without pieces and rows; it names all of their batches. Nullopt
/// if a norm is not finite.
std::optional<push_request>
sum_without_values(const std::vector<table_id>& tables,
                   std::span<const std::shared_ptr<const push_request>> pushes);

/// Returns the sum of the gradients of `pushes` for these tables, each clipped by its norm, in the
/// order of the pushes. A step with the sum has the same result as a step with all of them. The sum
/// names all of their batches. Null if the pushes have different ranges of a dense table, or a norm
/// is not finite.
std::shared_ptr<const push_request>
add_up(const job_spec& job, const std::vector<table_id>& tables,
       std::span<const std::shared_ptr<const push_request>> pushes, buffer_pool& pool);

} // namespace troupe
