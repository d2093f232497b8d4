#include "actors/protocol/coordinator/shard_recovery.hpp"

#include "actors/protocol/coordinator/membership.hpp"
#include "actors/protocol/mutation.hpp"

#include <algorithm>
#include <cassert>

namespace troupe {
namespace {

using namespace std::chrono_literals;

/// Pause between two searches for a checkpoint, when the first one failed.
constexpr auto search_pause = 1000ms;

/// Returns whether the new generation's server had not kept all acknowledged pushes of the last
/// one.
bool has_partial_state(const chain_metadata& record, const replica_status& what) {
  return record.proposed && record.active.config != config_id{} && !what.recovered
         && what.status.complete && what.status.generation == record.proposed->generation
         && what.status.generation != record.active.generation;
}

std::uint64_t count_missing(const batch_set& before, const batch_set& after) {
  auto both = before;
  both.intersect(after);
  return before.size() - both.size();
}

void abandon_cut(const recovery_context& context) {
  if (context.schedule.cutting())
    context.schedule.abandon(context.now);
  assert(!context.schedule.cutting());
}

} // namespace

shard_recovery::shard_recovery(const job_spec& job, recovery_options options,
                               const std::vector<chain_metadata>& records, bool is_known,
                               bool rolling_back)
    : job_(job), options_(options), by_clocks_(goes_by_clocks(job)), rolling_back_(rolling_back) {
  for (const auto& record : records) {
    auto& shard = shards_.emplace_back();
    shard.started = is_known || options.resume;
    shard.to_begin = rolling_back;
    shard.restored = record.proposed && record.active.config != config_id{}
                     && record.proposed->generation != record.active.generation;
  }
}

// -- events -------------------------------------------------------------------------------------

void shard_recovery::on_server_lost(const member_id& who, const recovery_context& context) {
  for (auto& shard : shards_) {
    if (shard.head != who)
      continue;
    shard.head.reset();
    shard.lost_batches = shard.report.applied;
    shard.serving = false;
    abandon_cut(context);
  }
}

void shard_recovery::hear(const member_id& from, const replica_status& what,
                          const recovery_context& context) {
  if (what.failed && what.unreadable != 0)
    on_unreadable(from, what, context);
  const auto index = what.shard.value;
  auto& shard = shards_[index];
  const auto& record = context.servers.records()[index];
  const auto& active = record.active;
  const auto& status = what.status;
  if (job_.durability == durability_mode::log && (!rolling_back_ || shard.to_begin)
      && has_partial_state(record, what))
    context.servers.has_partial_state(index, from);
  if (shard.to_begin || shard.head != from || status.generation != active.generation
      || status.config != active.config || !status.complete)
    return;
  applied_changed_ = applied_changed_ || shard.report.applied != what.applied;
  shard.report = what;
  context.schedule.skip_to(std::max(what.part.checkpoint, what.checkpoint_failed));
  if (!shard.serving)
    begin_serving(index, context);
}

/// Drops a checkpoint that the server could not read; its shard begins with an older one.
void shard_recovery::on_unreadable(const member_id& from, const replica_status& what,
                                   const recovery_context& context) {
  const auto& record = context.servers.records()[what.shard.value];
  if (!record.proposed || record.proposed->generation != what.status.generation
      || record.base_checkpoint != what.unreadable || shards_[what.shard.value].to_begin)
    return; // It answers an older desired state.
  context.notify(
    {event_kind::restore_failed,
     {{"member", name_of(from)}, {"checkpoint", what.unreadable}, {"reason", what.failed->text}}});
  if (std::ranges::find(unreadable_, what.unreadable) == unreadable_.end())
    if (!mutated(mutation::unreadable_forgotten))
      unreadable_.push_back(what.unreadable);
  abandon(what.shard.value, context);
}

void shard_recovery::follow_records(const recovery_context& context) {
  for (std::uint32_t index = 0; index < shards_.size(); ++index) {
    auto& shard = shards_[index];
    const auto& [active, base_checkpoint, proposed] = context.servers.records()[index];
    const bool is_over = proposed && proposed->generation != active.generation;
    std::optional<member_id> head;
    if (!active.members.empty() && !is_over && !context.servers.is_dead(active.members.front()))
      head = active.members.front();
    if (head == shard.head)
      continue;
    shard.head = head;
    shard.serving = false;
    abandon_cut(context);
  }
}

// -- the search for a checkpoint ----------------------------------------------------------------

void shard_recovery::search(const recovery_context& context) {
  searching_ = true;
  context.effects.push_back(find_checkpoint_effect{unreadable_});
}

result<bool> shard_recovery::on_found(const storage::checkpoint_search_result& what,
                                      const recovery_context& context) {
  if (!searching_)
    return false;
  if (what.newest && std::ranges::find(unreadable_, what.newest->checkpoint) != unreadable_.end()) {
    search(context); // A server has just failed to read it.
    return false;
  }
  searching_ = search_failing_ = false;
  search_again_at_.reset();
  for (const auto& refused : what.refused)
    context.notify({event_kind::checkpoint_skipped, {{"reason", refused.text}}});
  auto& committed = context.state.committed;
  // Only what was committed can be damaged.
  const bool had_one = committed > 0 || std::ranges::any_of(what.refused, [](const auto& x) {
                         return x.code == errc::damaged;
                       });
  if (!what.newest && had_one) {
    auto why = what.refused.empty() ? "checkpoint " + std::to_string(committed) + " is gone"
                                    : what.refused.front().text;
    for (std::size_t i = 1; i < what.refused.size(); ++i)
      why += "; " + what.refused[i].text;
    return {errc::damaged,
            "no checkpoint can be restored, and a restart would discard the training so far: "
              + why};
  }
  if (!what.newest && !options_.has_copies)
    context.notify({job_.durability == durability_mode::log ? event_kind::reading_logs
                                                            : event_kind::no_checkpoint,
                    {}});
  newest_checkpoint_ = what.newest ? what.newest->checkpoint : 0;
  if (*newest_checkpoint_ > committed) {
    committed = *newest_checkpoint_;
    context.persist();
  }
  return true;
}

result<void> shard_recovery::on_search_failed(const failure& why, const recovery_context& context) {
  if (!searching_)
    return {};
  const auto text = "cannot look for checkpoints: " + why.text;
  if (reaction_to(why.code) != reaction::retry && why.code != errc::io_failed)
    return {why.code, text};
  if (!std::exchange(search_failing_, true))
    context.notify({event_kind::checkpoint_search_failed, {{"reason", text}}});
  search_again_at_ = context.now + search_pause;
  return {};
}

void shard_recovery::search_again(const recovery_context& context) {
  if (!search_again_at_ || context.now < *search_again_at_)
    return;
  search_again_at_.reset();
  context.effects.push_back(find_checkpoint_effect{unreadable_});
}

// -- generations --------------------------------------------------------------------------------

bool shard_recovery::begin_generations(const recovery_context& context) {
  const auto& servers = context.servers;
  for (const auto index : servers.lost_chains()) {
    const auto& active = servers.records()[index].active;
    if (active.config == config_id{})
      shards_[index].to_begin = true; // It never had a generation.
    else if (!shards_[index].to_begin) {
      shards_[index].lost_by = active.members.front().index;
      abandon(index, context);
    }
  }
  for (std::uint32_t index = 0; index < shards_.size(); ++index)
    if (by_clocks_ && !rolling_back_ && servers.accepts_partial_state(index)) {
      // Before it acts: so no coordinator finds it acting while other shards have not gone back.
      abandon(index, context);
      roll_all_back(index, context);
    }
  return begin_abandoned(context);
}

/// Gives up the shard's state; another generation has to begin.
void shard_recovery::abandon(std::uint32_t index, const recovery_context& context) {
  auto& shard = shards_[index];
  shard.to_begin = shard.started = true;
  shard.serving = false;
  newest_checkpoint_.reset();
  abandon_cut(context);
  if (by_clocks_ && job_.durability == durability_mode::memory
      && !mutated(mutation::one_rolled_back))
    roll_all_back(index, context);
}

/// In bsp, takes every shard back to the same clock, in a new generation, after a loss in shard
/// `index`.
void shard_recovery::roll_all_back(std::uint32_t index, const recovery_context& context) {
  if (!std::exchange(rolling_back_, true)) {
    rollback_cause_ = index;
    acknowledged_ = context.batches.acknowledged();
    acknowledged_.unite(shards_[index].lost_batches);
    ++context.state.generation.value;
    context.state.rolling_back = true;
    context.persist();
  }
  for (auto& shard : shards_) {
    shard.serving = false;
    shard.to_begin = shard.started = true;
  }
  abandon_cut(context);
}

/// Begins the next generation of each abandoned shard. Returns whether records changed.
bool shard_recovery::begin_abandoned(const recovery_context& context) {
  if (!options_.checkpoints)
    newest_checkpoint_ = 0;
  bool changed = false;
  for (std::uint32_t index = 0; index < shards_.size(); ++index) {
    auto& shard = shards_[index];
    if (!shard.to_begin)
      continue;
    if (shard.started && !newest_checkpoint_) {
      // The checkpoint that is being committed may soon be the newest, and make an older one
      // disappear.
      if (!searching_ && !context.schedule.committing())
        search(context);
      return changed;
    }
    assert(!shard.started
           || std::ranges::find(unreadable_, *newest_checkpoint_) == unreadable_.end());
    if (!context.servers.begin_again(index, shard.started ? *newest_checkpoint_ : 0))
      continue; // One of its servers is expected.
    shard.to_begin = false;
    shard.restored = shard.started;
    changed = true;
  }
  return changed;
}

void shard_recovery::begin_serving(std::uint32_t index, const recovery_context& context) {
  auto& shard = shards_[index];
  shard.serving = shard.started = true;
  applied_changed_ = true;
  if (!std::exchange(shard.restored, false))
    return;
  audit_needed_ = true;
  if (by_clocks_)
    return;
  auto before = context.batches.acknowledged();
  before.unite(shard.lost_batches);
  count_rolled_back(index, before, shard.report.applied, context);
}

bool shard_recovery::all_serving() const {
  return std::ranges::all_of(shards_, [](const shard_state& shard) { return shard.serving; });
}

// -- applied batches ----------------------------------------------------------------------------

void shard_recovery::count_rolled_back(std::uint32_t index, const batch_set& before,
                                       const batch_set& after, const recovery_context& context) {
  auto& shard = shards_[index];
  if (options_.has_copies) { // Nothing is lost with the server.
    shard.lost_batches = {};
    return context.notify({event_kind::shard_recovered, {{"shard", std::uint64_t{index}}}});
  }
  const auto count = count_missing(before, after);
  rolled_back_[shard.lost_by] += count;
  shard.lost_batches = {};
  const auto& record = context.servers.records()[index];
  const auto base_checkpoint = record.base_checkpoint;
  if (shard.report.recovered && count == 0) {
    job_event recovered{event_kind::shard_recovered, {{"shard", std::uint64_t{index}}}};
    if (!record.active.members.empty())
      recovered.fields.push_back({"member", name_of(record.active.members.front())});
    return context.notify(std::move(recovered));
  }
  job_event restored{base_checkpoint == 0 ? event_kind::shard_restarted
                                          : event_kind::shard_restored,
                     {{"shard", std::uint64_t{index}}, {"updates", count}}};
  if (base_checkpoint > 0)
    restored.fields.push_back({"checkpoint", base_checkpoint});
  context.notify(std::move(restored));
}

std::uint64_t shard_recovery::rolled_back_by(std::uint32_t server) const {
  const auto found = rolled_back_.find(server);
  return found == rolled_back_.end() ? 0 : found->second;
}

void shard_recovery::compare_applied(const recovery_context& context) {
  if (!applied_changed_ || !all_serving())
    return;
  applied_changed_ = false;
  if (rolling_back_) {
    begin_history(context);
    return;
  }
  assert(!rolling_back_ && !context.state.rolling_back);
  if (!audit_needed_) {
    context.batches.settle(applied_by_all());
    return;
  }
  audit_needed_ = false;
  audited_at_ = context.now;
  if (const auto count = context.batches.audit(applied_by_all(), trust(audit_trust::none));
      count > 0)
    context.notify({event_kind::batches_recomputed, {{"batches", count}}});
}

/// Ends the rollback of all shards.
void shard_recovery::begin_history(const recovery_context& context) {
  const auto applied = applied_by_all();
  rolling_back_ = audit_needed_ = context.state.rolling_back = false;
  context.persist();
  context.batches.roll_back(applied);
  if (rollback_cause_)
    count_rolled_back(*rollback_cause_, acknowledged_, applied, context);
  rollback_cause_.reset();
  for (auto& shard : shards_)
    shard.lost_batches = {};
  context.schedule.restart(position(context.batches), context.now);
  audited_at_ = context.now;
  context.notify({event_kind::all_rolled_back,
                  {{"clock", clocks_of(applied)}, {"generation", context.state.generation.value}}});
}

void shard_recovery::audit_overdue(bool may_audit, const recovery_context& context) {
  if (!may_audit || !is_settled()) {
    audited_at_ = context.now;
    return;
  }
  if (context.now - audited_at_ < options_.audit_grace)
    return;
  audited_at_ = context.now;
  assert(!rolling_back_);
  if (const auto count = context.batches.audit(applied_by_all(), trust(audit_trust::once));
      count > 0)
    context.notify({event_kind::batches_missing, {{"batches", count}}});
}

/// Returns which finished batches an audit leaves alone, where a job without copies trusts `other`.
audit_trust shard_recovery::trust(audit_trust other) const {
  return options_.has_copies ? audit_trust::living : other;
}

batch_set shard_recovery::applied_by_all() const {
  auto common = shards_.front().report.applied;
  for (const auto& shard : shards_)
    common.intersect(shard.report.applied);
  return common;
}

std::uint64_t shard_recovery::clocks_of(const batch_set& applied) const {
  return applied.floor().value >= job_.batches() ? bsp_clock_count(job_)
                                                 : bsp_clock(job_, applied.floor());
}

checkpoint_schedule::position shard_recovery::position(const ledger& batches) const {
  checkpoint_schedule::position where{batches.settled(), 0};
  for (const auto& shard : shards_) {
    if (by_clocks_ && shard.serving)
      where.clock = std::max(where.clock, clocks_of(shard.report.applied));
  }
  return where;
}

} // namespace troupe
