// Checks of the coordinator's desired states and of its persisted records.
#include "cli/sim/job_world_parts.hpp"

namespace troupe::sim {
namespace {

/// A server is waited for longer than surely_heard if others have the same data.
constexpr time_point surely_waited_for = 7s;

} // namespace

void job_world::check_desired(const desired_state& what) {
  const auto [by, unused] = term_of_.try_emplace(what.term, coordinator_->id.incarnation.value);
  require(by->second == coordinator_->id.incarnation.value,
          "one coordinator: two of them speak in one term");
  for (const auto& [member, address] : what.listeners)
    require(traits_of(member.role).is_reached_by(what.to.role) && address == full_name(member),
            "addresses: a member is told of one that it may not connect to, or of a wrong address");
  const auto* const work = std::get_if<desired_worker>(&what.body);
  if (work != nullptr)
    for (const auto& entry : work->view.chains)
      require(!entry.serving || !address_of(what.listeners, entry.head).empty(),
              "addresses: a worker is not told where the head of a shard is");
  if (const auto* mine = std::get_if<desired_server>(&what.body))
    check_desired(*mine);
  else if (work != nullptr)
    check_leases(what.to, what.stop ? desired_worker{} : *work);
  else if (const auto* shown = std::get_if<job_status>(&what.body))
    check_evictions(*shown);
}

/// Marks workers that no chain waits for: the bound of ssp does not hold for them.
void job_world::check_desired(const desired_server& what) {
  for (const auto& one : what.workers) {
    auto* const whom = find_worker(member_of(one.worker, one.incarnation));
    if (whom != nullptr && one.clock == unbound_clock)
      whom->was_given_up = true;
  }
  // A restarted coordinator does not even name workers that did not come in time.
  for (const auto& [index, one] : workers_)
    if (one->disturbed_until && std::ranges::none_of(what.workers, [&](const clock_entry& x) {
          return x.worker.value == index;
        }))
      one->was_given_up = true;
  for (const auto& each : what.chains)
    require(newest_of(each.record).config <= newest_of(persisted_.chains[each.shard.value]).config,
            "persisted: a configuration is ordered that is not stored");
}

/// Checks that a lease id means one lease, which may get shorter. A stopped bsp job that cuts again
/// at a later clock shows more of a lease.
void job_world::check_leases(const member_id& to, const desired_worker& what) {
  const bool may_grow = stop_at_ && mode().clock_updates;
  for (const auto& one : what.leases) {
    const auto [known, unused] = leases_seen_.try_emplace(one.id, one, to);
    auto& [whole, holder] = known->second;
    const auto skipped = one.first.value - whole.first.value;
    if (may_grow && one.first >= whole.first)
      whole.count = std::max<std::uint32_t>(
        whole.count, static_cast<std::uint32_t>(skipped / whole.stride) + one.count);
    const bool is_part = one.first >= whole.first && one.stride == whole.stride
                         && skipped % whole.stride == 0
                         && skipped / whole.stride + one.count <= whole.count;
    require(holder == to && is_part, "leases: an id was used twice");
  }
  if (auto* const whom = find_worker(to); whom != nullptr && what.leases.empty())
    whom->was_given_up = whom->was_given_up || has_open_work(*whom);
  leases_changed_ = std::exchange(leases_now_[to], what.leases) != what.leases || leases_changed_;
}

/// Checks that two live workers never hold the same open batch in a term, when all have been told.
void job_world::check_open_batches() {
  if (!std::exchange(leases_changed_, false))
    return;
  const bool may_share = options_.slow_workers + job().backup_workers > 0;
  std::map<std::uint64_t, member_id> open;
  for (const auto& [who, leases] : leases_now_) {
    const auto* const holds = find_worker(who);
    if (holds == nullptr || holds->disturbed_until)
      continue;
    std::set<batch_id> done;
    for (const auto& each : holds->steps.progress())
      done.insert(each.done.begin(), each.done.end());
    for (const auto& one : leases) {
      const auto& told = told_done_[{who, one.id}];
      for (std::uint32_t i = 0; i < one.count; ++i) {
        if (done.contains(one.at(i)) || told.contains(one.at(i)))
          continue;
        const bool alone = open.try_emplace(one.at(i).value, who).first->second == who;
        tally_.shared += alone ? 0 : 1;
        if (!alone && !may_share)
          throw violation("leases: batch " + std::to_string(one.at(i).value) + " of "
                          + full_name(who) + " is open in two of them");
      }
    }
  }
}

/// Checks that at most one of these few workers is out, and that evictions have a pause between
/// them.
void job_world::check_evictions(const job_status& what) {
  const auto out = std::ranges::count(what.members, member_state::evicted, &member_status::state);
  require(out <= 1, "evictions: more workers are out than may be");
}

void job_world::check_eviction_told() {
  const auto pause = coordinator_options_of(options_, false).stragglers->eviction_interval;
  const auto now = local(*coordinator_);
  require(!evicted_at_ || now - *evicted_at_ >= pause, "evictions: they are too near");
  evicted_at_ = now;
}

// -- records ------------------------------------------------------------------------------------

void job_world::check_records(const storage::coordinator_state& before,
                              const storage::coordinator_state& after) {
  if (before.chains.size() != after.chains.size())
    return;
  bool one_was_lost = before.rolling_back;
  const auto patience = job().replicas > 1 ? surely_waited_for : surely_heard;
  std::vector<std::uint32_t> without_need;
  for (std::uint32_t i = 0; i < after.chains.size(); ++i) {
    const auto& chain = after.chains[i];
    const auto& old = before.chains[i];
    require(newest_of(chain).config >= newest_of(old).config
              && chain.active.config >= old.active.config,
            "epochs: they go back");
    if (chain.active.generation == old.active.generation
        && chain.active.members != old.active.members) {
      tally_.failovers += chain.active.members.front() != old.active.members.front()
                              && !lives(old.active.members.front())
                            ? 1
                            : 0;
      tally_.moves +=
        old.active.members.size() == job().replicas && chain.active.members.size() == job().replicas
          ? 1
          : 0;
    }
    if (chain.active.generation != old.active.generation && !old.active.members.empty())
      check_kept({i}, old.active, chain.active.generation);
    if (newest_of(chain).generation == newest_of(old).generation)
      continue;
    const bool was_beginning = newest_of(old).generation != old.active.generation;
    // With logs a server that takes an initial member's place begins with its own state, if it can.
    if (!is_durable() || !was_beginning || chain.base_checkpoint != old.base_checkpoint)
      check_base_checkpoint(chain);
    if (old.active.members.empty() || was_beginning)
      continue; // The chain was beginning already.
    const bool is_needless = std::ranges::any_of(old.active.members, [&](const member_id& who) {
      const auto paid = attention_.find(who);
      return lives(who) && paid != attention_.end() && now_ - paid->second.heard < patience
             && paid->second.silent_max < patience;
    });
    if (is_needless)
      without_need.push_back(i);
    else
      one_was_lost = true;
  }
  // In bsp all chains go back for one.
  require(without_need.empty() || (mode().clock_updates && one_was_lost),
          "lost: a chain goes back though one of its servers lives");
}

/// Returns true if the server, or a successor, may have been away long enough since then for others
/// to take its place.
bool job_world::was_missed(const member_id& who, time_point since) const {
  const auto paid = attention_.find({who.role, who.index, {}});
  return paid == attention_.end() || paid->second.missed_until >= since
         || now_ - paid->second.heard >= surely_heard;
}

/// Checks that a generation begins with a readable checkpoint, unless there is none.
void job_world::check_base_checkpoint(const chain_metadata& after) const {
  require(!refused_.contains(after.base_checkpoint),
          "checkpoints: one that cannot be read is to be restored again");
  require(after.base_checkpoint != 0 || good_checkpoints() == 0
            || after.active.config == config_id{},
          "checkpoints: a chain starts over though there is a good one");
}

} // namespace troupe::sim
