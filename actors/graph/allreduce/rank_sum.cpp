#include "actors/graph/allreduce/rank_sum.hpp"

namespace troupe {

result<void> rank_sum::compute(kernels::communicator& team, bool stop) {
  team.begin(model_.parts());
  return model_.compute(stop, [&](std::uint32_t part) { team.ready(part); });
}

result<void> rank_sum::finish(kernels::communicator& team) {
  if (auto summed = team.finish(); !summed || !model_.spoiled())
    return summed;
  model_.repeat();
  team.begin(model_.parts());
  return team.finish();
}

} // namespace troupe
