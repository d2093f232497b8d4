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

class peer_sum {
public:
  /// Borrowed: the model. Its parts are in use from compute() until finish() returns or the team
  /// ends.
  peer_sum(peer_model& model, std::uint32_t rank);

  /// The model's compute(); what is complete of it is added up meanwhile. Errors: as of that.
  [[nodiscard]] result<void> compute(link_team& team, bool stop);
  /// Of all ranks; also where one of their gradients was not finite. Errors: as of link_team::sum.
  [[nodiscard]] result<void> finish(link_team& team);

private:
  peer_model& model_;
  std::vector<flow_plan> plans_;
  std::vector<sum_part> parts_; ///< The model's, with those plans.
};

} // namespace troupe
