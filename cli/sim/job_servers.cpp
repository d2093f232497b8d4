// Servers: they apply orders, begin generations, and write their disks.
#include "cli/sim/job_world_parts.hpp"

namespace troupe::sim {

chain_status job_world::hosted::status() const {
  if (decider)
    return decider->status();
  return {generation, {}, newest_of(record).config, false, false};
}

replica_status job_world::hosted::describe() const {
  replica_status mine;
  mine.chain = chain;
  mine.status = status();
  if (unreadable != 0)
    mine.failed = "cannot read checkpoint " + std::to_string(unreadable);
  if (broken)
    mine.failed = broken_words;
  mine.unreadable = unreadable;
  mine.recovered = recovered;
  mine.part = part;
  mine.checkpoint_failed = checkpoint_failed;
  mine.checkpoint_failure = bad_disk_words;
  if (!decider || decider->state() == nullptr)
    return mine;
  mine.version = decider->state()->version();
  if (!decider->is_head())
    return mine;
  mine.marks = decider->state()->marks();
  mine.clocks = decider->state()->clocks();
  return mine;
}

std::vector<chain_status> job_world::server::statuses() const {
  std::vector<chain_status> all;
  for (const auto& [unused, at] : chains)
    all.push_back(at.status());
  return all;
}

void job_world::send_report(server& by) {
  server_status body;
  body.address = "s" + std::to_string(by.id.index);
  body.clock_ns = static_cast<std::uint64_t>(local(by).count());
  for (const auto& [unused, at] : by.chains)
    body.chains.push_back(at.describe());
  by.told = by.statuses();
  by.reported_at = local(by);
  send_up(by, std::move(body));
}

void job_world::act(server& by) {
  for (auto& [unused, at] : by.chains) {
    free_if_unnamed(by, at);
    if (at.decider && !at.broken)
      decide(by, at, [&](replica_effects& effects) { at.decider->tick(local(by), effects); });
  }
  if (local(by) - by.reported_at >= report_interval || by.statuses() != by.told)
    send_report(by);
}

// -- orders -------------------------------------------------------------------------------------

void job_world::hosted::list_workers(time_point now, replica_effects& effects) {
  const auto before = std::exchange(unbound, {});
  for (const auto& one : desired_state.workers) {
    const member_id who{role::worker, one.worker.value, one.incarnation};
    if (one.clock == unbound_clock || before.contains(who))
      unbound.insert(who);
  }
  decider->set_workers(desired_state.workers, now, effects);
}

void job_world::reconcile(server& by, const desired_state& what) {
  if (!by.takes(what))
    return;
  if (what.stop)
    return end(by.id);
  const auto& mine = std::get<desired_server>(what.body);
  for (const auto& [chain, record] : mine.chains) {
    auto& at = by.chains[chain];
    at.chain = chain;
    reconcile(by, at, record, mine);
  }
  if (by.statuses() != by.told
      || std::ranges::any_of(mine.workers, [](const auto& x) { return !x.known; }))
    send_report(by);
}

void job_world::reconcile(server& by, hosted& at, const chain_metadata& record,
                          const desired_server& what) {
  const bool other_workers = what.workers != at.desired_state.workers;
  at.record = record;
  at.desired_state = what;
  const auto newest = newest_of(record);
  if (takes_part(record.active, by.id) || takes_part(newest, by.id))
    at.unnamed_since.reset();
  else if (!at.unnamed_since)
    at.unnamed_since = local(by);
  const bool is_other = newest.generation != at.generation;
  const bool starts_generation = newest.joiner != by.id && takes_part(newest, by.id);
  // It takes a founder's place; when it was told of this generation it was no founder.
  const bool is_late = !is_other && newest.generation != record.active.generation
                       && starts_generation && at.decider && !at.decider->status().complete;
  if (is_late || (is_other && (takes_part(newest, by.id) || at.generation.value == 0)))
    begin_generation(by, at, newest);
  if (!at.decider || at.broken)
    return;
  const auto now = local(by);
  decide(by, at, [&](replica_effects& effects) {
    at.decider->renew(time_point{static_cast<std::int64_t>(what.heard_ns)});
    if (other_workers)
      at.list_workers(now, effects);
    at.decider->reconcile(record, now, effects);
  });
  if (const auto early = std::exchange(at.early_request, std::nullopt))
    send_copy(by, at, early->first, early->second);
  reconcile_checkpoint(by, at);
}

void job_world::reconcile_checkpoint(server& by, hosted& at) {
  const auto number = at.desired_state.checkpoint;
  if (number <= std::max(at.cut, at.checkpoint_failed))
    return;
  if (!at.decider->leads()) {
    if (is_durable() && at.decider->state() != nullptr && !at.copy_waits && number > at.kept_at) {
      at.kept_at = number;
      keep_image(by, at, image_of(at), [](bool) {});
    }
    return;
  }
  const bool passed = mode() == consistency_mode::bsp
                      && at.decider->state()->bsp_clocks() > at.desired_state.checkpoint_clock;
  if (passed) { // Other chains may have cut at that clock.
    at.checkpoint_failed = number;
    return;
  }
  decide(by, at, [&](replica_effects& effects) {
    at.decider->request_cut(number, at.desired_state.checkpoint_clock, local(by), effects);
  });
}

void job_world::fail_open(server& by, hosted& at, const failure& why) {
  for (const auto& [unused, open] : std::exchange(at.requests, {}))
    send_answer(by, open.from, open.asked, at.generation, why);
}

void job_world::begin_generation(server& by, hosted& at, const chain_config& newest) {
  fail_open(by, at, {errc::rolled_back, "the server restores its partitions"});
  hosted next;
  next.chain = at.chain;
  next.record = at.record;
  next.desired_state = at.desired_state;
  next.generation = newest.generation;
  next.job_generation = at.desired_state.generation;
  next.loading = at.loading + 1;
  next.next_token = at.next_token;
  next.cut = at.cut;
  next.kept_at = at.kept_at;
  next.unnamed_since = at.unnamed_since;
  next.checkpoint_failed = at.checkpoint_failed;
  at = std::move(next);
  if (newest.joiner == by.id || !takes_part(newest, by.id))
    return begin(by, at, {});
  if (is_durable() && at.record.active.config != config_id{})
    recover(by, at);
  else
    load(by, at);
}

// -- beginning a generation ---------------------------------------------------------------------

/// Begins with its own state, if that has all of the lost chain.
void job_world::recover(server& by, hosted& at) {
  later(by, at, disk_time(by), [this](server& mine, hosted& here) {
    const auto* disk = recall(mine, here);
    if (disk == nullptr)
      return load(mine, here);
    ++tally_.recoveries;
    const auto& [number, base] = *disk->bases.rbegin();
    here.recovered = true;
    found(mine, here, replayed(job(), base.image, disk->entries_from(number)));
  });
}

/// Returns its disk if the newest base is of this history and has all of the lost chain; else null.
const job_world::kept_chain* job_world::recall(const server& by, const hosted& at) const {
  const auto disk = disks_.find({by.id.index, at.chain});
  if (disk == disks_.end() || disk->second.bases.empty())
    return nullptr;
  const auto& kept = disk->second.bases.rbegin()->second.id;
  const bool is_of_use =
    kept.history == at.job_generation && kept_all(at.record.active, {by.id.index}, kept);
  return is_of_use ? &disk->second : nullptr;
}

std::vector<log_entry> job_world::kept_chain::entries_from(std::uint64_t first) const {
  std::map<std::uint64_t, log_entry> all;
  for (auto log = logs.lower_bound(first); log != logs.end(); ++log)
    for (const auto& [index, entry] : log->second) {
      if (entry)
        all.insert_or_assign(index, *entry);
      else
        all.erase(all.upper_bound(index), all.end());
    }
  std::vector<log_entry> in_order;
  for (auto& [unused, entry] : all)
    in_order.push_back(std::move(entry));
  return in_order;
}

void job_world::load(server& by, hosted& at) {
  if (at.record.base_checkpoint != 0)
    return later(by, at, disk_time(by),
                 [this](server& mine, hosted& here) { restore(mine, here); });
  later(by, at, now_ + pick_ms(5, 80), [this](server& mine, hosted& here) {
    tally_.starts_over += persisted_.term > 1 || here.desired_state.generation.value > 0 ? 1 : 0;
    value_image fresh;
    for (std::uint32_t p = 0; p < job().partitions; ++p)
      if (here.desired_state.chain_of[p] == here.chain)
        fresh.partitions.push_back({{p}, 0, {batch_set{}}});
    found(mine, here, std::move(fresh));
  });
}

void job_world::restore(server& by, hosted& at) {
  const auto base_checkpoint = at.record.base_checkpoint;
  if (is_unreadable(base_checkpoint)) {
    at.unreadable = base_checkpoint;
    ++tally_.unreadable;
    return send_report(by);
  }
  const auto& stored = checkpoints_.at(base_checkpoint);
  require(stored.committed, "checkpoints: one without commit is restored");
  ++tally_.restores;
  found(by, at, stored.parts.at(at.chain));
}

void job_world::found(server& by, hosted& at, value_image image) {
  if (!is_durable()) {
    begin(by, at, image);
    return go_on(by, at);
  }
  auto held = std::make_shared<value_image>(image);
  keep_image(by, at, std::move(image), [this, who = by.id, chain = at.chain, held](bool) {
    auto& mine = *find_server(who);
    auto& here = mine.chains.at(chain);
    begin(mine, here, *held);
    go_on(mine, here);
  });
}

/// Begins with an image. Without partitions the server has to join.
void job_world::begin(server& by, hosted& at, const value_image& image) {
  if (!image.partitions.empty())
    check_beginning(by, at, image);
  at.values = image;
  at.values.partitions.clear();
  replica_options how;
  how.shard.pull_patience = 200ms;
  if (job().replicas == 1)
    how.chain.lease_time = {};
  how.writes_log = is_durable();
  how.add_up = [](const std::vector<table_id>&,
                  std::span<const std::shared_ptr<const push_request>> pushes) {
    return sum_of(pushes);
  };
  at.decider.emplace(job(), by.id, at.job_generation, at.generation, image.partitions, how);
  decide(by, at, [&](replica_effects& effects) { at.list_workers(local(by), effects); });
}

/// Applies the orders that came while it was loading.
void job_world::go_on(server& by, hosted& at) {
  reconcile(by, at, chain_metadata{at.record}, desired_server{at.desired_state});
  send_report(by);
}

// -- disks --------------------------------------------------------------------------------------

/// Returns the time when its disk has done one more write.
time_point job_world::disk_time(server& by) {
  const bool is_slow = !quiet_ && chance(slow_disk_);
  by.disk_free_at =
    std::max(by.disk_free_at, now_) + (is_slow ? pick_ms(500, 3000) : pick_ms(5, 80));
  return by.disk_free_at;
}

value_image job_world::image_of(const hosted& at) const {
  auto image = at.values;
  image.partitions = at.decider->state()->partitions();
  return image;
}

job_world::kept_chain& job_world::disk_of(const server& by, const hosted& at) {
  return disks_[{by.id.index, at.chain}];
}

/// Writes a base and its log, which begins at once. If the generation is still the same then, calls
/// `then` with true if the base is whole: a founder's always is.
void job_world::keep_image(server& by, hosted& at, value_image image,
                           std::function<void(bool)> then) {
  auto& disk = disk_of(by, at);
  const auto number = ++disk.newest;
  auto& log = disk.logs[number];
  log.clear();
  if (at.decider && at.decider->state() != nullptr) {
    auto [index, entries] = at.decider->unapplied();
    for (auto& entry : entries)
      log.emplace_back(index++, std::move(entry));
  }
  kept_chain::base base{{number, at.job_generation, at.generation, at.recovered}, std::move(image)};
  const bool fails = job().replicas > 1 && at.decider && !quiet_ && chance(part_failure_);
  when_awake(by.id, disk_time(by),
             [this, number, fails, who = by.id, chain = at.chain, loading = at.loading,
              base = std::move(base), then = std::move(then)] {
               auto& here = find_server(who)->chains.at(chain);
               auto& written = disk_of(*find_server(who), here);
               if (!fails) {
                 written.bases[number] = base;
                 if (here.record.active.generation == base.id.generation)
                   wiped_disks_.erase({who.index, chain});
                 written.bases.erase(written.bases.begin(), written.bases.find(number));
                 written.logs.erase(written.logs.begin(), written.logs.lower_bound(number));
               }
               if (here.loading == loading)
                 then(!fails);
             });
}

/// Stops the server's part in a chain: it must not acknowledge an entry that its log lacks.
void job_world::break_off(server& by, hosted& at) {
  ++tally_.logs_broken;
  at.broken = true;
  fail_open(by, at, {errc::not_ready, "the server cannot write its log"});
  at.pulls_due.clear();
  send_report(by);
}

/// Frees a broken chain: the server goes on as if it had never had a part.
void job_world::free_if_unnamed(server& by, hosted& at) {
  if (!at.broken || !at.unnamed_since || local(by) - *at.unnamed_since < unnamed_time)
    return;
  begin_generation(by, at, at.record.active);
  reconcile(by, at, chain_metadata{at.record}, desired_server{at.desired_state});
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
           && std::ranges::none_of(lives->chains, [](const auto& x) { return x.second.broken; });
  };
  return std::ranges::any_of(persisted_.chains, [&](const chain_metadata& x) {
    return std::ranges::none_of(x.active.members, can_go_on);
  });
}

} // namespace troupe::sim
