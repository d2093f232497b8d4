#include "actors/protocol/session/evaluation_plan.hpp"

#include "actors/protocol/mutation.hpp"

#include <cassert>

namespace troupe {

std::optional<std::uint64_t> evaluation_plan::look(const job_update& news) {
  const auto& job = news.desired_state;
  const bool last = job.phase == job_phase::finished;
  auto epoch = job.batches_done / batches_per_epoch_;
  bool due = last || (which_ == evaluated_parameters::epochs && epoch > epoch_);
  if (which_ == evaluated_parameters::offered) {
    due = news.offered.has_value();
    epoch = news.offered.value_or(0);
  }
  if ((runs_ && !mutated(mutation::evaluations_overlap))
      || (is_last_ && !mutated(mutation::evaluated_after_last)) || !due)
    return std::nullopt;
  assert(!is_last_);
  runs_ = true;
  is_last_ = last;
  epoch_ = epoch;
  return epoch;
}

bool evaluation_plan::done() {
  assert(runs_);
  runs_ = false;
  return is_last_;
}

} // namespace troupe
