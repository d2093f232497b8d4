#include "actors/graph/ranks/rank_sum.hpp"

namespace troupe {

result<void> rank_sum::compute(kernels::communicator& communicator, bool stop) {
  communicator.begin(model_.parts());
  return model_.compute(stop, [&](std::uint32_t part) { communicator.ready(part); });
}

result<void> rank_sum::finish(kernels::communicator& communicator) {
  if (auto summed = communicator.finish(); !summed || !model_.spoiled())
    return summed;
  model_.repeat();
  communicator.begin(model_.parts());
  return communicator.finish();
}

} // namespace troupe
