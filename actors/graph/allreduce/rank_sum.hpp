// Adds up the gradients of a clock over all ranks of training without servers. Each part begins as
// soon as the rank's own numbers are complete.
//
//   compute() -> finish() -> the model's step()
#pragma once

#include "actors/graph/allreduce/link_communicator.hpp"
#include "actors/graph/allreduce/rank_model.hpp"
#include "base/error.hpp"

#include <cstdint>
#include <vector>

namespace troupe {

class rank_sum {
public:
  /// Borrowed: the model. Its parts are in use from compute() until finish() returns or the team
  /// ends.
  rank_sum(rank_model& model, std::uint32_t rank);

  /// Runs the model's compute(), and adds up complete parts meanwhile. Errors: as for compute().
  [[nodiscard]] result<void> compute(link_communicator& team, bool stop);
  /// Waits for the sums of all ranks, and repeats them if they are spoiled. Errors: those of
  /// link_communicator::sum.
  [[nodiscard]] result<void> finish(link_communicator& team);

private:
  rank_model& model_;
  std::vector<flow_plan> plans_;
  std::vector<sum_part> parts_; ///< The model's parts, with their plans.
};

} // namespace troupe
