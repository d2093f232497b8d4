// Servers: their hosts of replicas, the states that begin generations, and the states on disks.
// decide() of a server is in job_replicas.cpp. It gives an event to a host and carries its effects
// out.
#include "cli/sim/job_world_parts.hpp"

namespace troupe::sim {

std::vector<chain_status> job_world::server::statuses() const {
  std::vector<chain_status> all;
  for (const auto& [unused, at] : chains)
    all.push_back(at.host.status());
  return all;
}

void job_world::send_report(server& by) {
  server_status body;
  body.clock_ns = static_cast<std::uint64_t>(local(by).count());
  for (const auto& [unused, at] : by.chains)
    body.chains.push_back(at.host.report());
  by.told = by.statuses();
  by.reported_at = local(by);
  send_up(by, std::move(body));
}

void job_world::act(server& by) {
  for (auto& [unused, at] : by.chains) {
    decide(by, at, [&](host_effects& effects) { at.host.tick(local(by), effects); });
    check_freed(by, at);
  }
  if (local(by) - by.reported_at >= report_interval || by.statuses() != by.told)
    send_report(by);
}

// -- desired states ----------------------------------------------------------------------------

void job_world::hosted::list_workers(const desired_server& what) {
  const auto before = std::exchange(unbound, {});
  for (const auto& one : what.workers) {
    const auto who = member_of(one.worker, one.incarnation);
    if (one.clock == unbound_clock || (host.state() != nullptr && before.contains(who)))
      unbound.insert(who);
  }
}

replica_host_options job_world::host_options_of(const server& by) const {
  replica_host_options how;
  how.self = by.id;
  how.job = fingerprint_;
  how.apply_batch = options_.apply_batch;
  how.has_checkpoints = how.has_disk = true;
  how.unnamed_time = unnamed_time;
  how.replica_options_of = [](const job_spec&) {
    replica_options of_job;
    of_job.shard.pull_patience = 200ms;
    of_job.add_up = [](const std::vector<table_id>&,
                       std::span<const std::shared_ptr<const push_request>> pushes) {
      return sum_of(pushes);
    };
    return of_job;
  };
  return how;
}

void job_world::reconcile(server& by, const desired_state& what) {
  if (!by.takes(what))
    return;
  if (what.stop)
    return end(by.id, what.failed);
  const auto mine = std::make_shared<const desired_server>(std::get<desired_server>(what.body));
  for (const auto& [shard, record] : mine->chains) {
    auto& at = by.chains.try_emplace(shard, shard, host_options_of(by)).first->second;
    at.list_workers(*mine);
    if (takes_part(record.active, by.id) || takes_part(newest_of(record), by.id))
      at.unnamed_since.reset();
    else if (!at.unnamed_since)
      at.unnamed_since = local(by);
    decide(by, at,
           [&](host_effects& effects) { at.host.reconcile(record, mine, local(by), effects); });
  }
  if (by.statuses() != by.told
      || std::ranges::any_of(mine->workers, [](const auto& x) { return !x.known; }))
    send_report(by);
}

// -- beginning a generation ---------------------------------------------------------------------

void job_world::run(server&, hosted& at, begin_generation_effect&, host_effects&) {
  at.values = at.loaded = {};
  at.is_copy = false;
  at.gathered.clear();
  at.sent.reset();
  at.unbound.clear();
  at.list_workers(at.host.desired());
}

void job_world::fill(server& by, hosted& at, const load_effect& effect) {
  later(by, at, now_ + pick_ms(5, 80), [this, effect](server& mine, hosted& here) {
    if (!here.host.awaits_load(effect.load))
      return;
    const auto generation = here.host.desired().generation;
    tally_.starts_over += persisted_.term > 1 || generation.value > 0 ? 1 : 0;
    value_image fresh;
    for (const auto partition : effect.partitions)
      fresh.partitions.push_back({partition, 0, std::vector<batch_set>(job().tables.size())});
    loaded(mine, here, effect.load, std::move(fresh));
  });
}

void job_world::run(server& by, hosted& at, load_effect& effect, host_effects&) {
  if (effect.checkpoint == 0)
    return fill(by, at, effect);
  later(by, at, disk_time(by), [this, effect](server& mine, hosted& here) {
    if (!here.host.awaits_load(effect.load))
      return;
    if (is_unreadable(effect.checkpoint)) {
      ++tally_.unreadable;
      const failure why{errc::damaged,
                        "cannot read checkpoint " + std::to_string(effect.checkpoint)};
      return decide(mine, here, [&](host_effects& effects) {
        here.host.load_failed(effect.load, why, effects);
      });
    }
    const auto& stored = checkpoints_.at(effect.checkpoint);
    require(stored.committed, "checkpoints: one without commit is restored");
    ++tally_.restores;
    loaded(mine, here, effect.load, stored.parts.at(here.host.shard()));
  });
}

void job_world::run(server& by, hosted& at, recall_effect& effect, host_effects&) {
  later(by, at, disk_time(by), [this, load = effect.load](server& mine, hosted& here) {
    const auto& disk = disk_of(mine, here);
    std::optional<recalled_state> found;
    if (!disk.bases.empty()) {
      const auto& [number, base] = *disk.bases.rbegin();
      found = {base.id, disk.entries_from(number).size()};
    }
    decide(mine, here, [&](host_effects& effects) { here.host.recalled(load, found, effects); });
  });
}

/// Replays at once, as the log has not changed since it was recalled.
void job_world::run(server& by, hosted& at, replay_effect& effect, host_effects& more) {
  ++tally_.recoveries;
  const auto& disk = disk_of(by, at);
  const auto& [number, base] = *disk.bases.rbegin();
  at.loaded = replayed(job(), base.image, disk.entries_from(number));
  at.host.loaded(effect.load, at.loaded.partitions, local(by), more);
}

std::vector<log_entry> job_world::kept_chain::entries_from(std::uint64_t first) const {
  std::map<std::uint64_t, log_entry> all;
  for (auto log = logs.lower_bound(first); log != logs.end(); ++log)
    for (const auto& [index, entry] : log->second) {
      if (entry)
        all.insert_or_assign(index, *entry);
      else
        all.erase(all.lower_bound(index), all.end());
    }
  std::vector<log_entry> in_order;
  for (auto& [unused, entry] : all)
    in_order.push_back(std::move(entry));
  return in_order;
}

void job_world::loaded(server& by, hosted& at, std::uint64_t load, value_image image) {
  if (!at.host.awaits_load(load))
    return;
  at.loaded = std::move(image);
  decide(by, at, [&](host_effects& effects) {
    at.host.loaded(load, at.loaded.partitions, local(by), effects);
  });
}

void job_world::run(server& by, hosted& at, settle_loaded_effect& effect, host_effects&) {
  const auto image = std::exchange(at.loaded, {});
  const bool is_copy = std::exchange(at.is_copy, false);
  if (!effect.is_adopted)
    return;
  at.values = image;
  at.values.partitions.clear();
  if (!is_copy)
    return check_beginning(by, at, image);
  ++tally_.copies;
  check_applied(at, at.host.state()->version());
}

// -- disks --------------------------------------------------------------------------------------

/// Returns the time when its disk has done one more write.
time_point job_world::disk_time(server& by) {
  const bool is_slow = !quiet_ && chance(slow_disk_);
  by.disk_free_at =
    std::max(by.disk_free_at, now_) + (is_slow ? pick_ms(500, 3000) : pick_ms(5, 80));
  return by.disk_free_at;
}

job_world::kept_chain& job_world::disk_of(const server& by, const hosted& at) {
  return disks_[{by.id.index, at.host.shard()}];
}

/// Begins a save. The first save of a generation never fails.
void job_world::run(server& by, hosted& at, save_effect& effect, host_effects& more) {
  if (!effect.is_loaded())
    check_cut(at);
  auto image = effect.is_loaded() ? at.loaded : at.values;
  image.partitions = effect.partitions;
  if (effect.base)
    begin_base(by, at, effect);
  const bool may_fail = effect.id.purpose == save_purpose::checkpoint
                        || (effect.id.purpose != save_purpose::starting && job().replicas > 1);
  const bool fails = may_fail && !quiet_ && chance(part_failure_);
  at.host.written({}, local(by), more);
  later(by, at, disk_time(by),
        [this, id = effect.id, base = effect.base, image = std::move(image), fails](server& mine,
                                                                                    hosted& here) {
          if (!fails && base)
            end_base(mine, here, {*base, image});
          saved(mine, here, id, image, fails);
        });
}

/// Numbers the base and begins its log.
void job_world::begin_base(server& by, hosted& at, save_effect& effect) {
  auto& disk = disk_of(by, at);
  effect.base->sequence = ++disk.newest;
  if (!effect.begins_log)
    return;
  auto& log = disk.logs[disk.newest];
  log.clear();
  for (auto& entry : effect.log)
    log.emplace_back(effect.first++, std::move(entry));
}

void job_world::end_base(server& by, hosted& at, kept_base base) {
  auto& disk = disk_of(by, at);
  const auto number = base.id.sequence;
  if (at.host.record().active.generation == base.id.generation)
    wiped_disks_.erase({by.id.index, at.host.shard()});
  disk.bases[number] = std::move(base);
  disk.bases.erase(disk.bases.begin(), disk.bases.find(number));
  disk.logs.erase(disk.logs.begin(), disk.logs.lower_bound(number));
}

void job_world::saved(server& by, hosted& at, const save_id& id, const value_image& image,
                      bool fails) {
  const bool is_of_use = at.host.awaits_load(id.load);
  if (id.purpose == save_purpose::checkpoint && !fails && is_of_use)
    checkpoints_[id.checkpoint].parts[at.host.shard()] = image;
  tally_.parts_failed += id.purpose == save_purpose::checkpoint && fails ? 1 : 0;
  tally_.logs_broken += id.purpose == save_purpose::joining && fails && is_of_use ? 1 : 0;
  result<checkpoint_part> done =
    checkpoint_part{id.checkpoint, at.host.shard(), {}, image.version()};
  if (fails)
    done =
      failure{errc::io_failed,
              std::string{id.purpose == save_purpose::checkpoint ? bad_disk_words : broken_words}};
  decide(by, at, [&](host_effects& effects) { at.host.saved(id, done, local(by), effects); });
}

void job_world::run(server& by, hosted& at, write_effect& effect, host_effects& more) {
  if (effect.entry && job().replicas > 1 && !quiet_ && chance(part_failure_ * log_share)) {
    ++tally_.logs_broken;
    return at.host.written(failure{errc::io_failed, std::string{broken_words}}, local(by), more);
  }
  auto& disk = disk_of(by, at);
  disk.logs[disk.newest].emplace_back(effect.index, std::move(effect.entry));
  at.host.written({}, local(by), more);
}

/// Returns true if this failure is allowed. A server that cannot write its log may fail the job
/// only if no other server of a chain can go on. A job may also fail if its last checkpoint is not
/// written again and again.
bool job_world::may_fail(const std::string& why) {
  if (!why.ends_with(broken_words))
    return why.ends_with(bad_disk_words) && !quiet_;
  const auto can_go_on = [&](const member_id& who) {
    const auto* const lives = find_server(who);
    return lives != nullptr && !was_missed(who, now_)
           && std::ranges::none_of(lives->chains,
                                   [](const auto& x) { return x.second.host.is_broken(); });
  };
  return std::ranges::any_of(persisted_.chains, [&](const chain_metadata& x) {
    return std::ranges::none_of(x.active.members, can_go_on);
  });
}

} // namespace troupe::sim
