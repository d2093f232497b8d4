// Adds up the gradients of a clock over all ranks of training without servers. Each part begins as
// soon as the rank's own numbers are complete.
//
//   compute() -> finish() -> the model's step()
#pragma once

#include "actors/graph/ranks/rank_model.hpp"
#include "base/error.hpp"
#include "kernels/collectives/communicator.hpp"

namespace troupe {

class rank_sum {
public:
  /// Borrowed: the model. Its parts are in use from compute() until finish() returns or the
  /// communicator ends.
  explicit rank_sum(rank_model& model) : model_(model) {}

  /// The model's compute(); what is complete of it is added up meanwhile. Errors: as of that.
  [[nodiscard]] result<void> compute(kernels::communicator& communicator, bool stop);
  /// Waits for the sums of all ranks, also where a gradient was not finite. Errors: those of
  /// the communicator.
  [[nodiscard]] result<void> finish(kernels::communicator& communicator);

private:
  rank_model& model_;
};

} // namespace troupe
