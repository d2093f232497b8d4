// Slow workers: what the judge says is carried out, and spares compute what the slowest have to do.
#include "actors/protocol/coordinator/coordinator.hpp"

#include <algorithm>
#include <chrono>

namespace troupe {
namespace {

/// A spare takes another's batches instead when those take so many times as long.
constexpr int much_slower = 2;
/// Where no clocks are waited for, a spare has one batch at a time: most likely it comes too late.
constexpr std::uint32_t copied_batches_max = 1;

worker_progress progress_of(const worker_report& what) {
  const auto& counters = what.counters;
  return {counters.batches_computed, counters.samples_computed,
          std::chrono::microseconds{counters.wait_us}};
}

} // namespace

straggler_measure coordinator::duty_of(worker_id worker) const {
  return judge_ ? judge_->duty(worker) : straggler_measure::full;
}

void coordinator::judge(time_point now, coordinator_effects& effects) {
  if (!judge_ || recovering_ || phase_ == job_phase::stopped)
    return;
  straggler_events verdicts;
  judge_->tick(now, verdicts);
  for (const auto& verdict : verdicts) {
    tell(verdict.reason, effects);
    carry_out(verdict, now, effects);
  }
}

void coordinator::carry_out(const straggler_event& verdict, time_point now,
                            coordinator_effects& effects) {
  if (!verdict.worker || verdict.what != straggler_event::kind::duty)
    return;
  const auto id = *verdict.worker;
  const auto found = workers_.find(id.value);
  if (found == workers_.end() || found->second.duty == verdict.duty)
    return;
  auto& worker = found->second;
  const auto before = std::exchange(worker.duty, verdict.duty);
  if (verdict.duty == straggler_measure::out) {
    evict(id.value, now, effects);
  } else if (verdict.duty == straggler_measure::backup) {
    ledger_.lost(id);
    outdate(id);
    ++roster_;
  } else if (before == straggler_measure::backup) {
    // It goes by clocks again, and begins with one that nobody was promised to be past.
    ledger_.lost(id);
    outdate(id);
    if (worker.stage == admission::admitted)
      set_stage(worker, admission::leaving);
  } else if (verdict.duty == straggler_measure::relieved && ledger_.relieve(id)) {
    outdate(id);
  }
}

/// Its incarnation is over; the judge keeps a successor waiting.
void coordinator::evict(std::uint32_t index, time_point now, coordinator_effects& effects) {
  const auto seat = members_.all().find({role::worker, index, {}});
  if (seat == members_.all().end())
    return;
  const auto who = seat->second.id;
  lose(who, "evicted", now, effects);
  send_home(who, "", effects);
}

void coordinator::hear_progress(worker_state& worker, worker_id id, time_point now) {
  const auto done = progress_of(worker.report);
  if (judge_)
    judge_->progress(id, done, now);
  if (done.steps == worker.step.steps)
    return;
  const auto busy = now - worker.step_at - (done.blocked - worker.step.blocked);
  if (done.steps > worker.step.steps)
    worker.step_time = busy / static_cast<std::int64_t>(done.steps - worker.step.steps);
  worker.step = done;
  worker.step_at = now;
}

/// Of the last one, or of the one that it computes now where that takes longer.
time_point coordinator::step_time(worker_id worker, time_point now) const {
  const auto found = workers_.find(worker.value);
  if (found == workers_.end())
    return {}; // It was lost; others have its batches.
  const auto& one = found->second;
  const auto blocked = progress_of(one.report).blocked - one.step.blocked;
  return std::max<time_point>(one.step_time, now - one.step_at - blocked);
}

/// `any`: that regular workers can have. Spares have some as long as others do.
bool coordinator::has_work_for(worker_id worker, bool any) const {
  const auto duty = workers_.at(worker.value).duty;
  const bool may_copy =
    duty == straggler_measure::backup || (job_.backup_workers > 0 && worker.value >= job_.workers);
  return work_may_go_on() && duty != straggler_measure::out
         && (any || (may_copy && ledger_.any_leased()));
}

void coordinator::copy_work(time_point now) {
  if (!work_may_go_on())
    return;
  const auto all = muster();
  std::set<worker_id> copied;
  for (const auto spare : all.spare)
    if (const auto whose = ledger_.copied_by(spare))
      copied.insert(*whose);
  for (const auto spare : all.spare)
    if (!ledger_.owns_work(spare)) // Of the time before it was spare.
      copy_slowest(spare, copied, now);
}

/// The spare computes again what the slowest worker has to do that no other spare does.
void coordinator::copy_slowest(worker_id spare, std::set<worker_id>& copied, time_point now) {
  const auto before = ledger_.copied_by(spare);
  auto slowest = before;
  const auto threshold = [&](worker_id one) {
    return slowest == before && before ? much_slower * step_time(one, now) : step_time(one, now);
  };
  for (const auto& [index, worker] : workers_) {
    const worker_id one{index};
    if (copied.contains(one) || !ledger_.owns_work(one))
      continue;
    if (!slowest || step_time(one, now) > threshold(*slowest))
      slowest = one;
  }
  if (!slowest) {
    if (ledger_.holds_work(spare)) { // Others were first.
      ledger_.lost(spare);
      outdate(spare);
    }
    return;
  }
  if (before)
    copied.erase(*before);
  copied.insert(*slowest);
  const auto count_max = bsp_ ? options_.ledger.lease_batches : copied_batches_max;
  if (ledger_.copy(*slowest, spare, next_lease_, count_max))
    outdate(spare);
}

} // namespace troupe
