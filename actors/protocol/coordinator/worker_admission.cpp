#include "actors/protocol/coordinator/worker_admission.hpp"

#include "actors/protocol/clock_table.hpp"
#include "actors/protocol/mutation.hpp"

#include <algorithm>
#include <cassert>
#include <chrono>

namespace troupe {
namespace {

using namespace std::chrono_literals;
using stage = admission_stage;

/// At the start of training all workers are admitted before the first lease, so that the first
/// worker does not get every slot of the first clocks. No worker waits longer than this.
constexpr auto first_leases_wait = 1000ms;
/// A worker's pace is measured over stretches of at least this time, several statuses long.
constexpr auto pace_stretch = 300ms;
/// A backup worker changes to another worker whose steps take this many times as long.
constexpr int much_slower = 2;

worker_progress progress_of(const worker_status& what) {
  const auto& counters = what.counters;
  return {counters.batches_computed, counters.samples_computed,
          std::chrono::microseconds{counters.wait_us}
            + std::chrono::microseconds{counters.channel_wait_us}};
}

void measure_pace(worker_state& worker, time_point now) {
  const auto acknowledged = worker.report.counters.pushes_acknowledged;
  const auto stretch = now - worker.pace_since;
  const bool begins = worker.stage != stage::admitted || worker.pace_since == time_point{0}
                      || acknowledged < worker.pace_base;
  if (!begins && stretch < pace_stretch)
    return;
  if (!begins)
    worker.batches_per_second = static_cast<double>(acknowledged - worker.pace_base)
                                / std::chrono::duration<double>(stretch).count();
  worker.pace_since = now;
  worker.pace_base = acknowledged;
}

void measure_step(worker_state& worker, time_point now) {
  const auto done = progress_of(worker.report);
  if (done.steps == worker.step.steps)
    return;
  const auto busy = now - worker.step_at - (done.blocked - worker.step.blocked);
  if (done.steps > worker.step.steps)
    worker.step_time = busy / static_cast<std::int64_t>(done.steps - worker.step.steps);
  worker.step = done;
  worker.step_at = now;
}

/// Returns the worker's entry in the clock vector of the shard's head, or null.
const clock_entry* entry_of(const shard_state& shard, const member_id& worker) {
  const auto found = std::ranges::find_if(shard.report.clocks, [&](const clock_entry& x) {
    return x.worker.value == worker.index && x.incarnation == worker.incarnation;
  });
  return found == shard.report.clocks.end() ? nullptr : &*found;
}

bool listed_anywhere(const std::vector<shard_state>& shards, const member_id& worker) {
  return std::ranges::any_of(shards, [&](const auto& x) { return entry_of(x, worker) != nullptr; });
}

/// Returns whether some shard does not wait for the worker: an earlier coordinator demoted it.
bool is_unbound(const std::vector<shard_state>& shards, const member_id& worker) {
  return std::ranges::any_of(shards, [&](const auto& x) {
    const auto* const entry = entry_of(x, worker);
    return entry != nullptr && entry->clock == unbound_clock;
  });
}

/// Returns the clock at which every shard lets it begin; nullopt while a shard has not answered.
std::optional<std::uint64_t> promised_clock(const std::vector<shard_state>& shards,
                                            const member_id& worker) {
  std::uint64_t latest = 0;
  for (const auto& shard : shards) {
    const auto* const entry = entry_of(shard, worker);
    if (!shard.serving || entry == nullptr || !entry->known)
      return std::nullopt;
    latest = std::max(latest, entry->clock);
  }
  return latest;
}

} // namespace

worker_admission::worker_admission(const job_spec& job, ledger_options leases,
                                   std::chrono::milliseconds lease_time,
                                   const std::optional<straggler_options>& stragglers,
                                   std::uint64_t term)
    : regular_(job.workers), backups_(job.backup_workers),
      copied_batches_max_(goes_by_clocks(job) ? leases.lease_batches : 1), lease_time_(lease_time),
      ledger_(job, leases), next_lease_(mutated(mutation::lease_ids_again) ? 1 : (term << 32) + 1) {
  assert(next_lease_ > term << 32);
  if (stragglers)
    detector_.emplace(*stragglers);
}

// -- events -------------------------------------------------------------------------------------

straggler_events worker_admission::on_join(worker_id id, const std::string& host, time_point now) {
  auto& worker = workers_[id.value] = {};
  set_stage(worker, stage::out);
  worker.step_at = now;
  straggler_events events;
  if (detector_)
    detector_->joined(id, host, now, events);
  worker.measure = measure_of(id);
  return events;
}

std::uint64_t worker_admission::on_lost(worker_id id, time_point now) {
  const auto before = ledger_.remaining();
  ledger_.lost(id);
  workers_.erase(id.value);
  ++roster_;
  if (detector_)
    detector_->left(id, now);
  return ledger_.remaining() - before;
}

void worker_admission::hear(worker_id id, const worker_status& body, time_point now) {
  auto& worker = workers_.at(id.value);
  worker.report = body;
  measure_pace(worker, now);
  if (detector_)
    detector_->progress(id, progress_of(body), now);
  measure_step(worker, now);
}

void worker_admission::take_progress(worker_id id, bool recovering) {
  auto& worker = workers_.at(id.value);
  if (ledger_.progress(id, worker.report.leases, recovering))
    outdated_.insert(id);
  // Only admitted workers get leases. Some of its pushes may not be applied yet, so servers are not
  // told that its clock is that of its report: the worker's own requests tell them.
  if (recovering && ledger_.holds_work(id)) {
    set_stage(worker, stage::admitted);
    worker.adopted = true;
    worker.start_clock = mutated(mutation::recovered_clock_told) ? worker.report.clock : 0;
  }
}

void worker_admission::reset_clocks() {
  for (auto& [index, worker] : workers_)
    worker.start_clock = 0;
}

void worker_admission::take_all_leases() {
  for (const auto& [index, unused] : workers_) {
    ledger_.lost({index});
    outdated_.insert({index});
  }
}

void worker_admission::decide(const work_conditions& now_valid) {
  admit(now_valid);
  if (now_valid.may_work) {
    const auto pool = available_workers(now_valid.members);
    hand_out(pool, now_valid);
    copy_work(pool, now_valid.now);
  }
  release_idle(now_valid);
  outdated_.merge(ledger_.take_shortened());
}

// -- admission ----------------------------------------------------------------------------------

void worker_admission::admit(const work_conditions& now_valid) {
  const bool any = any_work();
  for (const auto& [slot, record] : now_valid.members.workers()) {
    auto& worker = workers_.at(slot.index);
    const bool work = has_work_for({slot.index}, any, now_valid);
    const auto is_listed = [&] { return listed_anywhere(now_valid.shards, record.id); };
    const auto& last = worker.report;
    if (worker.adopted && worker.stage == stage::admitted
        && worker.measure < straggler_measure::demoted && is_unbound(now_valid.shards, record.id)) {
      ledger_.lost({slot.index});
      outdated_.insert({slot.index});
      set_stage(worker, stage::leaving);
    }
    if (worker.stage == stage::leaving && !is_listed())
      set_stage(worker, stage::out);
    if (worker.stage == stage::out && work && !is_listed())
      set_stage(worker, stage::candidate);
    if (worker.stage == stage::candidate && !work)
      set_stage(worker, stage::leaving);
    if (worker.stage != stage::candidate)
      continue;
    if (const auto promised = promised_clock(now_valid.shards, record.id)) {
      set_stage(worker, stage::admitted);
      worker.start_clock = std::max(
        {mutated(mutation::promise_ignored) ? 0 : *promised,
         last.generation == now_valid.generation ? last.clock : 0,
         mutated(mutation::promise_ignored) ? 0 : slowest_clock(now_valid.generation).value_or(0)});
      assert(worker.start_clock >= *promised);
    }
  }
}

/// Returns the smallest clock of the admitted workers, where a new worker may begin. A shard that
/// was just restored has answered no pull and would promise clock 0, for which all others would
/// have to wait.
std::optional<std::uint64_t> worker_admission::slowest_clock(generation_id generation) const {
  std::optional<std::uint64_t> slowest;
  for (const auto& [index, worker] : workers_)
    if (worker.stage == stage::admitted && worker.measure < straggler_measure::demoted
        && worker.report.generation == generation)
      slowest = std::min(slowest.value_or(worker.report.clock), worker.report.clock);
  return slowest;
}

/// Removes workers without work from the clocks, so that no worker waits for them.
void worker_admission::release_idle(const work_conditions& now_valid) {
  const bool any = any_work();
  for (auto& [index, worker] : workers_) {
    if (worker.stage == stage::admitted && !now_valid.rolling_back
        && !has_work_for({index}, any, now_valid) && !ledger_.holds_work({index}))
      set_stage(worker, stage::leaving);
  }
}

void worker_admission::set_stage(worker_state& worker, admission_stage to) {
  worker.stage = to;
  ++roster_;
}

bool worker_admission::any_has_worked() const {
  return std::ranges::any_of(
    workers_, [](const auto& x) { return x.second.report.counters.batches_computed > 0; });
}

// -- leases -------------------------------------------------------------------------------------

/// Returns whether a worker without work can get some.
bool worker_admission::any_work() const {
  return ledger_.remaining() > 0 || ledger_.overloaded(lease_limits());
}

/// Returns whether the worker can get work. `any`: there is work for regular workers. A backup
/// worker can get copies as long as any worker holds a lease.
bool worker_admission::has_work_for(worker_id id, bool any,
                                    const work_conditions& now_valid) const {
  const auto measure = workers_.at(id.value).measure;
  const bool may_copy =
    measure == straggler_measure::demoted || (backups_ > 0 && id.value >= regular_);
  return now_valid.may_work && measure != straggler_measure::evicted
         && (any || (may_copy && ledger_.any_leased()));
}

worker_admission::worker_pool worker_admission::available_workers(const membership& members) const {
  worker_pool all;
  for (const auto& [slot, record] : members.workers()) {
    const auto& worker = workers_.at(slot.index);
    all.more_to_come = all.more_to_come || worker.stage == stage::candidate;
    if (worker.stage != stage::admitted || record.disconnected)
      continue;
    const bool enough = backups_ > 0 && all.regular.size() >= regular_;
    const bool is_backup = worker.measure == straggler_measure::demoted || enough;
    (is_backup ? all.backup : all.regular).push_back({slot.index});
  }
  if (all.regular.empty())
    std::swap(all.regular, all.backup);
  return all;
}

void worker_admission::hand_out(const worker_pool& all, const work_conditions& now_valid) {
  if (all.more_to_come && now_valid.now - now_valid.training_since < first_leases_wait)
    return;
  auto ready = all.regular;
  // A rebalanced worker gets its next lease when it has none.
  std::erase_if(ready, [&](worker_id id) {
    return workers_.at(id.value).measure == straggler_measure::rebalanced && ledger_.holds_work(id);
  });
  if (ready.empty())
    ready = all.regular; // In bsp it may itself wait for queued batches.
  assert(std::ranges::all_of(
    ready, [&](worker_id id) { return workers_.at(id.value).stage == admission_stage::admitted; }));
  const auto limits = lease_limits();
  const bool one_idles =
    std::ranges::any_of(ready, [&](worker_id id) { return !ledger_.holds_work(id); });
  if (one_idles && ledger_.others_first())
    if (const auto from = ledger_.overloaded(limits); from && ledger_.take_leases(*from))
      outdated_.insert(*from); // It gives back batches that it has not begun.
  if (ledger_.remaining() > 0)
    outdated_.merge(ledger_.hand_out(ready, next_lease_, limits));
}

/// Returns the largest number of batches in a lease, for each worker.
std::map<worker_id, std::uint32_t> worker_admission::lease_limits() const {
  std::map<worker_id, std::uint32_t> limits;
  const auto seconds = std::chrono::duration<double>(lease_time_).count();
  for (const auto& [index, worker] : workers_) {
    // Before its pace is known, it gets as many batches as it has done, at first one.
    const auto batches = worker.batches_per_second
                           ? *worker.batches_per_second * seconds
                           : static_cast<double>(worker.report.counters.pushes_acknowledged);
    const bool is_rebalanced = worker.measure == straggler_measure::rebalanced;
    limits[{index}] = is_rebalanced ? 1 : static_cast<std::uint32_t>(std::clamp(batches, 1.0, 1e6));
  }
  return limits;
}

// -- copies of work -----------------------------------------------------------------------------

void worker_admission::copy_work(const worker_pool& all, time_point now) {
  std::set<worker_id> copied;
  for (const auto backup : all.backup)
    if (const auto whose = ledger_.copied_by(backup))
      copied.insert(*whose);
  for (const auto backup : all.backup)
    if (!ledger_.owns_work(backup)) // It may still hold work from its time as a regular worker.
      copy_slowest(backup, copied, now);
}

/// Copies the slowest worker's batches to the backup worker, unless another one has a copy.
void worker_admission::copy_slowest(worker_id backup, std::set<worker_id>& copied, time_point now) {
  assert(!ledger_.owns_work(backup));
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
      outdated_.insert(backup);
    }
    return;
  }
  if (before)
    copied.erase(*before);
  copied.insert(*slowest);
  if (ledger_.copy(*slowest, backup, next_lease_, copied_batches_max_))
    outdated_.insert(backup);
}

/// Returns the time of its last step, or of the present one if that takes longer.
time_point worker_admission::step_time(worker_id worker, time_point now) const {
  const auto found = workers_.find(worker.value);
  if (found == workers_.end())
    return {}; // It was lost; other workers have its batches.
  const auto& one = found->second;
  const auto blocked = progress_of(one.report).blocked - one.step.blocked;
  return std::max<time_point>(one.step_time, now - one.step_at - blocked);
}

// -- stragglers ---------------------------------------------------------------------------------

straggler_measure worker_admission::measure_of(worker_id worker) const {
  return detector_ ? detector_->measure(worker) : straggler_measure::full;
}

straggler_events worker_admission::detect_stragglers(time_point now) {
  straggler_events events;
  if (detector_)
    detector_->tick(now, events);
  return events;
}

bool worker_admission::carry_out(const straggler_event& event) {
  if (!event.worker || event.what != straggler_event::kind::measure)
    return false;
  const auto id = *event.worker;
  const auto found = workers_.find(id.value);
  if (found == workers_.end() || found->second.measure == event.measure)
    return false;
  auto& worker = found->second;
  const auto before = std::exchange(worker.measure, event.measure);
  if (event.measure == straggler_measure::evicted)
    return true;
  if (event.measure == straggler_measure::demoted) {
    ledger_.lost(id);
    outdated_.insert(id);
    ++roster_;
  } else if (before == straggler_measure::demoted) {
    // Its clocks count again, and it begins with a clock that no worker was promised to be past.
    ledger_.lost(id);
    outdated_.insert(id);
    if (worker.stage == stage::admitted)
      set_stage(worker, stage::leaving);
  } else if (event.measure == straggler_measure::rebalanced && ledger_.take_leases(id)) {
    outdated_.insert(id);
  }
  return false;
}

} // namespace troupe
