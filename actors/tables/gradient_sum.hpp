// Several pushes added up: the slots of a bsp clock, so that one gradient goes along the chain and
// not one for each worker, or what the workers of one process push.
#pragma once

#include "base/buffer.hpp"
#include "serialization/job.hpp"
#include "serialization/push_pull.hpp"

#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace troupe {

/// A sum of these pushes without pieces and rows: it names all of their batches. Nothing where a
/// norm is not finite.
std::optional<push_request>
sum_without_values(const std::vector<table_id>& tables,
                   std::span<const std::shared_ptr<const push_request>> pushes);

/// What the gradients of `pushes` for these tables add up to, each clipped by its norm, in the
/// order of the pushes: a store that steps with the sum does what it would have done with all of
/// them. It names all of their batches. Null where the pushes bring different ranges of a dense
/// table, or a norm that is not finite.
std::shared_ptr<const push_request>
add_up(const job_spec& job, const std::vector<table_id>& tables,
       std::span<const std::shared_ptr<const push_request>> pushes, buffer_pool& pool);

} // namespace troupe
