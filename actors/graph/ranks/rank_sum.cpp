#include "actors/graph/ranks/rank_sum.hpp"

namespace troupe {

result<void> compute_and_add(rank_model& model, kernels::communicator& communicator, bool stop) {
  communicator.begin(model.parts());
  return model.compute(stop, [&](std::uint32_t part) { communicator.ready(part); });
}

result<void> finish_sum(rank_model& model, kernels::communicator& communicator) {
  if (auto summed = communicator.finish(); !summed || !model.spoiled())
    return summed;
  model.repeat();
  communicator.begin(model.parts());
  return communicator.finish();
}

} // namespace troupe
