// Admits workers into the chains' clock vectors, releases them, and hands out leases.
#include "actors/protocol/coordinator/coordinator.hpp"

#include "actors/protocol/clock_table.hpp"
#include "actors/protocol/mutation.hpp"

#include <algorithm>

namespace troupe {
namespace {

using namespace std::chrono_literals;

/// At the start of training all workers are admitted before the first lease, so that the first
/// worker does not get every slot of the first clocks. No worker waits longer than this.
constexpr auto first_leases_wait = 1000ms;
/// A worker's pace is measured over stretches of at least this time, several statuses long.
constexpr auto pace_stretch = 300ms;

} // namespace

bool coordinator::work_may_go_on() const {
  return !recovering_ && !frozen_
         && (phase_ == job_phase::training
             || (phase_ == job_phase::finishing && stop_deadline_.has_value()));
}

/// Returns whether some chain's clock vector still has this incarnation.
bool coordinator::listed_anywhere(const member_id& worker) const {
  return std::ranges::any_of(chains_, [&](const chain_state& chain) {
    const auto& clocks = chain.report.clocks;
    return std::any_of(clocks.begin(), clocks.end(), [&](const clock_entry& x) {
      return x.worker.value == worker.index && x.incarnation == worker.incarnation;
    });
  });
}

/// Returns whether some chain no longer waits for it: an earlier coordinator made it a backup.
bool coordinator::is_unbound(const member_id& worker) const {
  return std::ranges::any_of(chains_, [&](const chain_state& chain) {
    return std::ranges::any_of(chain.report.clocks, [&](const clock_entry& x) {
      return x.worker.value == worker.index && x.incarnation == worker.incarnation
             && x.clock == unbound_clock;
    });
  });
}

/// Returns the clock at which every chain lets it begin; nullopt while a chain has not answered.
std::optional<std::uint64_t> coordinator::promised_clock(const member_id& worker) const {
  std::uint64_t latest = 0;
  for (const auto& chain : chains_) {
    const auto& clocks = chain.report.clocks;
    const auto mine = std::find_if(clocks.begin(), clocks.end(), [&](const clock_entry& x) {
      return x.worker.value == worker.index && x.incarnation == worker.incarnation && x.known;
    });
    if (!chain.serving || mine == clocks.end())
      return std::nullopt;
    latest = std::max(latest, mine->clock);
  }
  return latest;
}

/// Returns the smallest clock of the admitted workers, where a new worker may begin. A chain that
/// was just restored has answered no pull and would promise clock 0, for which all others would
/// have to wait.
std::optional<std::uint64_t> coordinator::slowest_clock() const {
  std::optional<std::uint64_t> slowest;
  for (const auto& [index, worker] : workers_)
    if (worker.stage == admission::admitted && worker.measure < straggler_measure::demoted
        && worker.report.generation == state_.generation)
      slowest = std::min(slowest.value_or(worker.report.clock), worker.report.clock);
  return slowest;
}

/// Returns whether a worker without work can get some.
bool coordinator::any_work() const {
  return ledger_.remaining() > 0 || ledger_.overloaded(lease_limits());
}

void coordinator::admit_workers() {
  const bool any = any_work();
  for (const auto& [slot, record] : members_.all()) {
    if (slot.role != role::worker)
      continue;
    auto& worker = workers_[slot.index];
    const bool work = has_work_for({slot.index}, any);
    const auto& last = worker.report;
    if (worker.adopted && worker.stage == admission::admitted
        && worker.measure < straggler_measure::demoted && is_unbound(record.id)) {
      ledger_.lost({slot.index});
      outdate({slot.index});
      set_stage(worker, admission::leaving);
    }
    if (worker.stage == admission::leaving && !listed_anywhere(record.id))
      set_stage(worker, admission::out);
    if (worker.stage == admission::out && work && !listed_anywhere(record.id))
      set_stage(worker, admission::candidate);
    if (worker.stage == admission::candidate && !work)
      set_stage(worker, admission::leaving);
    if (worker.stage != admission::candidate)
      continue;
    if (const auto promised = promised_clock(record.id)) {
      set_stage(worker, admission::admitted);
      worker.start_clock =
        std::max({mutated(mutation::promise_ignored) ? 0 : *promised,
                  last.generation == state_.generation ? last.clock : 0,
                  mutated(mutation::promise_ignored) ? 0 : slowest_clock().value_or(0)});
    }
  }
}

coordinator::worker_pool coordinator::available_workers() const {
  worker_pool all;
  for (const auto& [slot, record] : members_.all()) {
    if (slot.role != role::worker)
      continue;
    const auto& worker = workers_.at(slot.index);
    all.more_to_come = all.more_to_come || worker.stage == admission::candidate;
    if (worker.stage != admission::admitted || record.disconnected)
      continue;
    const bool enough = job_.backup_workers > 0 && all.regular.size() >= job_.workers;
    const bool is_backup = worker.measure == straggler_measure::demoted || enough;
    (is_backup ? all.backup : all.regular).push_back({slot.index});
  }
  if (all.regular.empty())
    std::swap(all.regular, all.backup);
  return all;
}

void coordinator::hand_out(const worker_pool& all, time_point now) {
  if (!work_may_go_on())
    return;
  if (all.more_to_come && now - training_since_ < first_leases_wait)
    return;
  auto ready = all.regular;
  // A relieved worker gets its next lease when it has none.
  std::erase_if(ready, [&](worker_id id) {
    return workers_.at(id.value).measure == straggler_measure::rebalanced && ledger_.holds_work(id);
  });
  if (ready.empty())
    ready = all.regular; // In bsp it may itself wait for queued batches.
  const auto limits = lease_limits();
  const bool one_idles =
    std::ranges::any_of(ready, [&](worker_id id) { return !ledger_.holds_work(id); });
  if (ledger_.remaining() == 0 && one_idles) // Then others give back batches that they have not
                                             // begun.
    if (const auto from = ledger_.overloaded(limits); from && ledger_.take_leases(*from))
      outdate(*from);
  if (ledger_.remaining() == 0)
    return;
  for (const auto id : ledger_.hand_out(ready, next_lease_, limits))
    outdate(id);
}

/// Returns the largest number of batches in a lease, for each worker.
std::map<worker_id, std::uint32_t> coordinator::lease_limits() const {
  std::map<worker_id, std::uint32_t> limits;
  const auto seconds = std::chrono::duration<double>(options_.lease_time).count();
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

void coordinator::measure_pace(worker_state& worker, time_point now) const {
  const auto acknowledged = worker.report.counters.pushes_acknowledged;
  const auto stretch = now - worker.pace_since;
  if (worker.stage != admission::admitted || worker.pace_since == time_point{0}
      || acknowledged < worker.pace_base) {
    worker.pace_since = now;
    worker.pace_base = acknowledged;
  } else if (stretch >= pace_stretch) {
    worker.batches_per_second = static_cast<double>(acknowledged - worker.pace_base)
                                / std::chrono::duration<double>(stretch).count();
    worker.pace_since = now;
    worker.pace_base = acknowledged;
  }
}

/// Removes workers without work from the clocks, so that no worker waits for them.
void coordinator::release_idle_workers() {
  const bool any = any_work();
  for (auto& [index, worker] : workers_) {
    if (worker.stage == admission::admitted && !frozen_ && !has_work_for({index}, any)
        && !ledger_.holds_work({index}))
      set_stage(worker, admission::leaving);
  }
}

void coordinator::set_stage(worker_state& worker, admission to) {
  worker.stage = to;
  ++roster_;
}

/// Marks the worker's desired state as outdated, because its leases changed.
void coordinator::outdate(worker_id worker) {
  if (const auto slot = members_.all().find({role::worker, worker.value, {}});
      slot != members_.all().end())
    slot->second.outdated = true;
}

} // namespace troupe
