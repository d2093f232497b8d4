#include "actors/graph/allreduce/rank_sum.hpp"

namespace troupe {

rank_sum::rank_sum(rank_model& model, std::uint32_t rank) : model_(model) {
  for (const auto part : model.parts())
    plans_.push_back(
      plan_of_rank(schedule_for_links(model.job().workers, part.size_bytes()), rank));
  for (std::size_t i = 0; i < plans_.size(); ++i)
    parts_.push_back({&plans_[i], model.parts()[i]});
}

result<void> rank_sum::compute(link_communicator& team, bool stop) {
  team.begin(parts_);
  return model_.compute(stop, [&](std::uint32_t part) { team.ready(part); });
}

result<void> rank_sum::finish(link_communicator& team) {
  if (auto summed = team.finish(); !summed || !model_.spoiled())
    return summed;
  model_.repeat();
  team.begin(parts_);
  return team.finish();
}

} // namespace troupe
