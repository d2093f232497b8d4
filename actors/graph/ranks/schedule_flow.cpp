#include "actors/graph/ranks/schedule_flow.hpp"

#include <algorithm>
#include <cassert>

namespace troupe {

flow_plan plan_of_rank(const kernels::schedule& plan, std::uint32_t rank) {
  assert(rank < plan.devices && plan.staging == 0);
  flow_plan made{rank, plan.chunks, kernels::fingerprint_of(plan), {}};
  for (std::uint32_t i = 0; i < plan.steps.size(); ++i)
    if (plan.steps[i].from == rank || plan.steps[i].to == rank)
      made.steps.push_back({i, plan.steps[i]});
  return made;
}

schedule_flow::schedule_flow(const flow_plan& plan)
    : plan_(&plan), arrived_(plan.steps.size()), leaving_(plan.chunks) {}

std::optional<flow_plan::own_step> schedule_flow::next(bool may_send) {
  if (!plan_ || begun_ == plan_->steps.size())
    return std::nullopt;
  const auto& now = plan_->steps[begun_];
  if (now.step.from == plan_->rank) {
    if (!may_send)
      return std::nullopt;
    ++leaving_[now.step.chunk];
    ++on_way_;
  } else if (!arrived_[begun_] || leaving_[now.step.chunk] > 0) {
    return std::nullopt;
  }
  ++begun_;
  return now;
}

bool schedule_flow::arrived(std::uint32_t number, std::uint32_t from) {
  if (!plan_)
    return false;
  const auto found =
    std::ranges::lower_bound(plan_->steps, number, {}, &flow_plan::own_step::number);
  if (found == plan_->steps.end() || found->number != number || found->step.from != from)
    return false;
  const auto at = static_cast<std::size_t>(found - plan_->steps.begin());
  if (from == plan_->rank || arrived_[at])
    return false;
  arrived_[at] = true;
  return true;
}

bool schedule_flow::awaits(std::uint32_t from) const {
  for (std::size_t i = begun_; plan_ && i < plan_->steps.size(); ++i)
    if (plan_->steps[i].step.from == from && !arrived_[i])
      return true;
  return false;
}

void schedule_flow::left(std::uint32_t chunk) {
  assert(leaving_[chunk] > 0);
  --leaving_[chunk];
  --on_way_;
}

} // namespace troupe
