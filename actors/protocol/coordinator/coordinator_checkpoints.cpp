// Compares the batches that servers have applied, queues missing ones again, and runs checkpoints.
#include "actors/protocol/coordinator/coordinator.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// Attempts at the last checkpoint before the job fails: most likely its disk is full.
constexpr std::uint32_t last_failures_max = 5;

std::uint64_t count_missing(const batch_set& before, const batch_set& after) {
  auto both = before;
  both.intersect(after);
  return before.size() - both.size();
}

} // namespace

// -- applied batches ----------------------------------------------------------------------------

void coordinator::count_rolled_back(std::uint32_t index, const batch_set& before,
                                    const batch_set& after, coordinator_effects& effects) {
  auto& chain = chains_[index];
  const auto count = count_missing(before, after);
  rolled_back_[chain.lost_by] += count;
  chain.lost_marks = {};
  const auto& record = placement_.records()[index];
  const auto base_checkpoint = record.base_checkpoint;
  if (chain.report.recovered && count == 0) {
    job_event recovered{event_kind::shard_recovered, {{"shard", std::uint64_t{index}}}};
    if (!record.active.members.empty())
      recovered.fields.push_back({"member", name_of(record.active.members.front())});
    return notify(std::move(recovered), effects);
  }
  job_event restored{base_checkpoint == 0 ? event_kind::shard_restarted
                                          : event_kind::shard_restored,
                     {{"shard", std::uint64_t{index}}, {"updates", count}}};
  if (base_checkpoint > 0)
    restored.fields.push_back({"checkpoint", base_checkpoint});
  notify(std::move(restored), effects);
}

void coordinator::compare_marks(time_point now, coordinator_effects& effects) {
  if (!marks_changed_ || !all_serving())
    return;
  marks_changed_ = false;
  if (frozen_) {
    begin_generation(now, effects);
    return;
  }
  if (!audit_needed_) {
    ledger_.settle(common_marks());
    return;
  }
  audit_needed_ = false;
  audited_at_ = now;
  if (const auto count = ledger_.audit(common_marks(), false); count > 0)
    notify({event_kind::batches_recomputed, {{"batches", count}}}, effects);
}

void coordinator::begin_generation(time_point now, coordinator_effects& effects) {
  const auto marks = common_marks();
  frozen_ = audit_needed_ = state_.rolling_back = false;
  persist(effects);
  ledger_.roll_back(marks);
  if (rollback_cause_)
    count_rolled_back(*rollback_cause_, acknowledged_, marks, effects);
  rollback_cause_.reset();
  for (auto& chain : chains_)
    chain.lost_marks = {};
  schedule_.restart(position(), now);
  audited_at_ = now;
  notify({event_kind::all_rolled_back,
          {{"clock", clocks_of(marks)}, {"generation", state_.generation.value}}},
         effects);
}

/// Queues finished batches that stay unapplied: their acknowledgement was lost with its server.
void coordinator::audit_overdue(time_point now, coordinator_effects& effects) {
  if (recovering_ || frozen_ || !all_serving() || phase_ == job_phase::stopped) {
    audited_at_ = now;
    return;
  }
  if (now - audited_at_ < options_.audit_grace)
    return;
  audited_at_ = now;
  if (const auto count = ledger_.audit(common_marks(), true); count > 0)
    notify({event_kind::batches_missing, {{"batches", count}}}, effects);
}

batch_set coordinator::common_marks() const {
  auto common = chains_.front().report.marks;
  for (const auto& chain : chains_)
    common.intersect(chain.report.marks);
  return common;
}

// -- checkpoints --------------------------------------------------------------------------------

std::uint64_t coordinator::clocks_of(const batch_set& marks) const {
  return marks.floor().value >= job_.batches() ? bsp_clock_count(job_)
                                               : bsp_clock(job_, marks.floor());
}

checkpoint_schedule::position coordinator::position() const {
  checkpoint_schedule::position where{ledger_.settled(), 0};
  for (const auto& chain : chains_) {
    if (bsp_ && chain.serving)
      where.clock = std::max(where.clock, clocks_of(chain.report.marks));
  }
  return where;
}

void coordinator::run_checkpoints(time_point now, coordinator_effects& effects) {
  if (!options_.checkpoints)
    return;
  if (schedule_.cutting())
    collect_parts(now, effects);
  if (!all_serving() || frozen_)
    return;
  schedule_.observe(position(), now);
  if (phase_ == job_phase::training && schedule_.due(position(), now))
    schedule_.begin(position(), now, true);
}

void coordinator::collect_parts(time_point now, coordinator_effects& effects) {
  if (schedule_.overdue(now)) {
    checkpoint_failed("it took too long", now, effects);
    return;
  }
  for (std::uint32_t index = 0; index < chains_.size(); ++index) {
    const auto& chain = chains_[index];
    if (chain.report.checkpoint_failed == schedule_.number()) {
      checkpoint_failed(chain.report.checkpoint_failure, now, effects);
      return;
    }
    if (!chain.serving || chain.report.part.chain.value != index
        || !schedule_.add(chain.report.part))
      continue;
    effects.push_back(
      commit_checkpoint_effect{{schedule_.number(), job_, state_.generation, schedule_.clock(),
                                ledger_.cursor(), schedule_.parts()}});
    return;
  }
}

void coordinator::checkpoint_failed(const std::string& why, time_point now,
                                    coordinator_effects& effects) {
  const auto number = schedule_.number();
  schedule_.fail(now);
  notify({event_kind::checkpoint_failed, {{"checkpoint", number}, {"reason", why}}}, effects);
  if (number == last_checkpoint_ && ++last_failures_ >= last_failures_max && !stop_deadline_)
    fail("the last checkpoint cannot be written: " + why, effects);
}

void coordinator::scrub_failed(const failure& why, coordinator_effects& effects) {
  restore_.reset(); // It may be that one.
  notify(
    {why.code == errc::damaged ? event_kind::checkpoint_damaged : event_kind::checkpoint_unreadable,
     {{"reason", why.text}}},
    effects);
}

} // namespace troupe
