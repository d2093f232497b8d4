// Adds up the gradients of a clock over all ranks of training without servers. Each part begins as
// soon as the rank's own numbers are complete.
//
//   compute_and_add() -> finish_sum() -> the model's step()
//
// The model's parts are in use from the first call until the second one returns or the communicator
// ends.
#pragma once

#include "actors/graph/ranks/rank_model.hpp"
#include "base/error.hpp"
#include "kernels/collectives/communicator.hpp"

namespace troupe {

/// The model's compute(); what is complete of it is added up meanwhile. Errors: as of that.
[[nodiscard]] result<void> compute_and_add(rank_model& model, kernels::communicator& communicator,
                                           bool stop);
/// Waits for the sums of all ranks, also where a gradient was not finite. Errors: those of the
/// communicator.
[[nodiscard]] result<void> finish_sum(rank_model& model, kernels::communicator& communicator);

} // namespace troupe
