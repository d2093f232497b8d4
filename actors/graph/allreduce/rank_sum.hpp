// Adds up the gradients of a clock over all ranks of training without servers, each part as soon as
// the rank's own is complete.
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

  /// The model's compute(); what is complete of it is added up meanwhile. Errors: as of that.
  [[nodiscard]] result<void> compute(link_communicator& team, bool stop);
  /// Waits for the sums of all ranks, also where a gradient was not finite. Errors: those of
  /// link_communicator::sum.
  [[nodiscard]] result<void> finish(link_communicator& team);

private:
  rank_model& model_;
  std::vector<flow_plan> plans_;
  std::vector<sum_part> parts_; ///< The model's, with those plans.
};

} // namespace troupe
