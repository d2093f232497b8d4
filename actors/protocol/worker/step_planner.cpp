#include "actors/protocol/worker/step_planner.hpp"

#include <algorithm>
#include <cassert>

namespace troupe {

step_planner::step_planner(const job_spec& job, step_planner_options options)
    : job_(job), goes_by_clocks_(goes_by_clocks(job)), options_(options) {
  if (has_waiting_pulls(job))
    options_.ahead_max = 0;
  if (goes_by_clocks_)
    options_.pushes_in_flight_max = job.workers;
}

void step_planner::reconcile(const desired_worker& now_valid) {
  if (now_valid.view.generation > generation_) { // History was rolled back; start over.
    generation_ = now_valid.view.generation;
    work_.clear();
    drop_steps([](const entry&) { return true; });
    pushed_.clear();
    clock_ = 0;
  }
  admitted_ = now_valid.admitted;
  if (admitted_) // Each time: an update between two admissions may be lost.
    clock_ = std::max(clock_, now_valid.start_clock);
  work_.set_leases(now_valid.leases);
  drop_unwanted();
}

void step_planner::drop_unwanted() {
  drop_steps([this](const entry& x) { return !work_.is_in_flight(x.step.batch); });
  std::erase_if(pushed_, [this](batch_id batch) { return !work_.is_in_flight(batch); });
  // In bsp other workers wait for the smaller batch that is open now; this one can wait.
  const auto open = work_.next();
  if (goes_by_clocks_ && open && !steps_.empty() && steps_.front().phase != phase::computing
      && *open < steps_.front().step.batch) {
    work_.reopen(steps_.front().step.batch);
    steps_.pop_front();
  }
}

template <class Unwanted>
void step_planner::drop_steps(Unwanted is_unwanted) {
  std::erase_if(steps_, [&](const entry& x) {
    const bool is_gone = is_unwanted(x);
    if (is_gone && x.phase == phase::computing)
      dropped_.push_back(x.step.number);
    return is_gone;
  });
}

void step_planner::begin_steps() {
  while (admitted_ && steps_.size() <= options_.ahead_max) {
    const auto batch = work_.next();
    if (!batch)
      return;
    work_.in_flight(*batch);
    steps_.push_back({{next_number_++, *batch, generation_, 0}, phase::to_pull});
  }
}

std::optional<training_step> step_planner::next_pull() {
  begin_steps();
  for (auto& next : steps_)
    if (next.phase == phase::to_pull) {
      next.phase = phase::pulling;
      next.step.clock = clock_;
      return next.step;
    }
  return std::nullopt;
}

std::optional<training_step> step_planner::next_pull_with(const training_step& push) {
  begin_steps();
  const auto next = std::find_if(steps_.begin(), steps_.end(),
                                 [](const entry& x) { return x.phase == phase::to_pull; });
  if (next == steps_.end()
      || (goes_by_clocks_ && bsp_clock(job_, next->step.batch) != bsp_clock(job_, push.batch) + 1))
    return std::nullopt;
  return next_pull();
}

std::optional<training_step> step_planner::next_compute() {
  const std::size_t computing_max = options_.ahead_max > 0 ? 2 : 1;
  if (computing_ >= computing_max || pushed_.size() >= options_.pushes_in_flight_max)
    return std::nullopt;
  const auto next = std::find_if(steps_.begin(), steps_.end(),
                                 [](const entry& x) { return x.phase != phase::computing; });
  if (next == steps_.end() || next->phase != phase::ready)
    return std::nullopt;
  ++computing_;
  next->phase = phase::computing;
  return next->step;
}

step_planner::entry* step_planner::find(std::uint64_t number) {
  const auto found = std::find_if(steps_.begin(), steps_.end(),
                                  [&](const entry& x) { return x.step.number == number; });
  return found == steps_.end() ? nullptr : &*found;
}

bool step_planner::pulled(std::uint64_t number) {
  auto* step = find(number);
  if (step == nullptr || step->phase != phase::pulling)
    return false;
  step->phase = phase::ready;
  return true;
}

void step_planner::pull_failed(std::uint64_t number) {
  if (auto* step = find(number); step != nullptr && step->phase == phase::pulling)
    step->phase = phase::to_pull;
}

std::optional<training_step> step_planner::computed(std::uint64_t number) {
  --computing_;
  if (steps_.empty() || steps_.front().step.number != number)
    return std::nullopt;
  auto done = steps_.front().step;
  steps_.pop_front();
  assert(steps_.empty() || steps_.front().step.number > number);
  assert(done.generation == generation_ && work_.is_in_flight(done.batch));
  done.clock = clock_++;
  pushed_.insert(done.batch);
  return done;
}

bool step_planner::acknowledged(const training_step& pushed) {
  if (pushed.generation != generation_ || pushed_.erase(pushed.batch) == 0)
    return false;
  assert(work_.is_in_flight(pushed.batch));
  work_.done(pushed.batch);
  return true;
}

bool step_planner::not_applied(const training_step& pushed) {
  if (pushed.generation != generation_ || pushed_.erase(pushed.batch) == 0)
    return false;
  work_.reopen(pushed.batch);
  return true;
}

} // namespace troupe
