// Carries out the measures against slow workers, and gives copies of their work to spare workers.
#include "actors/protocol/coordinator/coordinator.hpp"

#include <algorithm>
#include <chrono>

namespace troupe {
namespace {

/// A spare worker changes to another worker whose steps take this many times as long.
constexpr int much_slower = 2;
/// In ssp and asp a spare has one batch at a time: most likely its copy comes too late.
constexpr std::uint32_t copied_batches_max = 1;

worker_progress progress_of(const worker_status& what) {
  const auto& counters = what.counters;
  return {counters.batches_computed, counters.samples_computed,
          std::chrono::microseconds{counters.wait_us}};
}

} // namespace

straggler_measure coordinator::measure_of(worker_id worker) const {
  return detector_ ? detector_->measure(worker) : straggler_measure::full;
}

void coordinator::detect_stragglers(time_point now, coordinator_effects& effects) {
  if (!detector_ || recovering_ || phase_ == job_phase::stopped)
    return;
  straggler_events events;
  detector_->tick(now, events);
  for (const auto& event : events) {
    notify(event.what_happened, effects);
    carry_out(event, now, effects);
  }
}

void coordinator::carry_out(const straggler_event& event, time_point now,
                            coordinator_effects& effects) {
  if (!event.worker || event.what != straggler_event::kind::measure)
    return;
  const auto id = *event.worker;
  const auto found = workers_.find(id.value);
  if (found == workers_.end() || found->second.measure == event.measure)
    return;
  auto& worker = found->second;
  const auto before = std::exchange(worker.measure, event.measure);
  if (event.measure == straggler_measure::evicted) {
    evict(id.value, now, effects);
  } else if (event.measure == straggler_measure::demoted) {
    ledger_.lost(id);
    outdate(id);
    ++roster_;
  } else if (before == straggler_measure::demoted) {
    // Its clocks count again, and it begins with a clock that no worker was promised to be past.
    ledger_.lost(id);
    outdate(id);
    if (worker.stage == admission::admitted)
      set_stage(worker, admission::leaving);
  } else if (event.measure == straggler_measure::rebalanced && ledger_.take_leases(id)) {
    outdate(id);
  }
}

/// Ends the worker's incarnation; the detector keeps a successor waiting.
void coordinator::evict(std::uint32_t index, time_point now, coordinator_effects& effects) {
  const auto slot = members_.all().find({role::worker, index, {}});
  if (slot == members_.all().end())
    return;
  const auto who = slot->second.id;
  lose(who, "evicted", now, effects);
  reject_member(who, "", effects);
}

void coordinator::hear_progress(worker_state& worker, worker_id id, time_point now) {
  const auto done = progress_of(worker.report);
  if (detector_)
    detector_->progress(id, done, now);
  if (done.steps == worker.step.steps)
    return;
  const auto busy = now - worker.step_at - (done.blocked - worker.step.blocked);
  if (done.steps > worker.step.steps)
    worker.step_time = busy / static_cast<std::int64_t>(done.steps - worker.step.steps);
  worker.step = done;
  worker.step_at = now;
}

/// Returns the time of its last step, or of the present one if that takes longer.
time_point coordinator::step_time(worker_id worker, time_point now) const {
  const auto found = workers_.find(worker.value);
  if (found == workers_.end())
    return {}; // It was lost; other workers have its batches.
  const auto& one = found->second;
  const auto blocked = progress_of(one.report).blocked - one.step.blocked;
  return std::max<time_point>(one.step_time, now - one.step_at - blocked);
}

/// Returns whether the worker can get work. `any`: there is work for regular workers. A spare can
/// get copies as long as any worker holds a lease.
bool coordinator::has_work_for(worker_id worker, bool any) const {
  const auto measure = workers_.at(worker.value).measure;
  const bool may_copy = measure == straggler_measure::demoted
                        || (job_.backup_workers > 0 && worker.value >= job_.workers);
  return work_may_go_on() && measure != straggler_measure::evicted
         && (any || (may_copy && ledger_.any_leased()));
}

void coordinator::copy_work(time_point now) {
  if (!work_may_go_on())
    return;
  const auto all = available_workers();
  std::set<worker_id> copied;
  for (const auto backup : all.backup)
    if (const auto whose = ledger_.copied_by(backup))
      copied.insert(*whose);
  for (const auto backup : all.backup)
    if (!ledger_.owns_work(backup)) // It may still hold work that it had before it was spare.
      copy_slowest(backup, copied, now);
}

/// Gives the spare a copy of the slowest worker's batches, unless another spare has them.
void coordinator::copy_slowest(worker_id backup, std::set<worker_id>& copied, time_point now) {
  const auto before = ledger_.copied_by(backup);
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
    if (ledger_.holds_work(backup)) { // Other workers did its batches first.
      ledger_.lost(backup);
      outdate(backup);
    }
    return;
  }
  if (before)
    copied.erase(*before);
  copied.insert(*slowest);
  const auto count_max = bsp_ ? options_.ledger.lease_batches : copied_batches_max;
  if (ledger_.copy(*slowest, backup, next_lease_, count_max))
    outdate(backup);
}

} // namespace troupe
