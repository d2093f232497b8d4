// Servers of the simulated chains: effects of their replicas, and messages that they receive.
#include "actors/protocol/mutation.hpp"
#include "cli/sim/chain_world_parts.hpp"

#include <algorithm>

namespace troupe::sim {

time_point chain_world::local_time(double rate) const {
  return time_point{static_cast<std::int64_t>(static_cast<double>(now_.count()) * rate)};
}

void chain_world::start_server(std::uint32_t index) {
  auto& slot = servers_[index];
  // The contents of its disk, if the disk survived.
  const bool has_disk = chance(0.5);
  auto fresh = std::make_unique<server>(member_of(server_id{index}, {++incarnations_}),
                                        has_disk ? slot->decide.generation() : generation_id{},
                                        has_disk ? slot->applied : std::vector<entry>{}, false);
  fresh->rate = slot->rate;
  fresh->paused_until = slot->paused_until;
  slot = std::move(fresh);
  note(chain_member_name(slot->id) + " starts with " + std::to_string(slot->applied.size()));
}

void chain_world::kill_server(std::uint32_t index) {
  auto& victim = *servers_[index];
  note(chain_member_name(victim.id) + " is killed");
  ++tally_.kills;
  victim.alive = false;
  victim.back_at = now_ + milliseconds{pick(1, 3000)};
  if (deaths_are_seen_)
    at(now_ + milliseconds{pick(1, 50)}, [this, who = victim.id] {
      dead_.insert(who);
      coordinator_told_of_death(who);
    });
}

/// Returns true if the victim may be lost. The protocol loses no push, and goes on, while in each
/// chain a member holds everything that was acknowledged and does not count as dead.
bool chain_world::may_lose(const server& victim) const {
  const auto has = [](const chain_config& config, const member_id& who) {
    return std::ranges::find(config.members, who) != config.members.end();
  };
  return std::ranges::all_of(persisted_, [&](const chain_metadata& chain) {
    const auto& next = newest(chain);
    const bool begins = next.generation != chain.active.generation;
    if (begins && deaths_are_seen_)
      return true; // No push is left that could be lost.
    return std::ranges::any_of(servers_, [&](const auto& x) {
      const bool holds_all =
        begins || &chain != &persisted_.front() || x->decide.last() >= acknowledged_;
      return x.get() != &victim && x->alive && now_ >= x->deaf_until && holds_all
             && (begins || has(chain.active, x->id)) && has(next, x->id);
    });
  });
}

void chain_world::tick(server& by) {
  if (!by.alive) {
    if (now_ >= by.back_at)
      start_server(by.id.index);
    return;
  }
  if (now_ < by.paused_until)
    return;
  chain_effects effects;
  by.decide.tick(local_time(by.rate), effects);
  carry_out(by, effects);
  if (now_ >= by.report_at || statuses(by) != by.reported)
    send_report(by);
}

std::vector<chain_status> chain_world::statuses(const server& of) const {
  std::vector<chain_status> all{of.decide.status()};
  for (std::size_t i = 1; i < of.told.size(); ++i) {
    const auto& last = newest(of.told[i]);
    all.push_back({last.generation, of.told[i].active.config, last.config, true, true});
  }
  return all;
}

void chain_world::send_report(server& by) {
  by.report_at = now_ + server_status_interval;
  by.reported = statuses(by);
  post(by.id, coordinator_id, status_in_flight{by.reported, local_time(by.rate)});
}

void chain_world::carry_out(server& by, chain_effects& effects) {
  for (const auto& effect : effects)
    std::visit([&](const auto& x) { run(by, x); }, effect);
  effects.clear();
  const auto status = by.decide.status();
  require(status.joiner_synced || by.synced_in == config_id{} || by.synced_in != status.config,
          "joiner synced: a tail that waited for its joiner went on without it");
  if (status.joiner_synced)
    by.synced_in = status.config;
}

void chain_world::run(server& by, const append_effect& x) {
  const auto found = by.log.find(x.what.index);
  require(found != by.log.end(), "log: an entry is gone that is still to be sent");
  post(by.id, x.to, append_in_flight{x.what, found->second});
}

void chain_world::run(server& by, const chain_message_effect& x) {
  std::visit([&](const auto& what) { post(by.id, x.to, what); }, x.what);
}

void chain_world::run(server& by, const commit_effect& x) {
  for (std::uint64_t index = by.applied.size() + 1; index <= x.index; ++index) {
    const auto found = by.log.find(index);
    require(found != by.log.end(), "log: an entry is gone that is still to be applied");
    const entry next = found->second;
    require(by.index_of_batch.emplace(next.batch, index).second,
            "exactly once: a batch is applied twice");
    by.applied.push_back(next);
    by.pending.erase(next.batch);
    if (by.decide.generation() != generation_) {
      // It has not heard that its history is over; no other member accepts its messages.
    } else if (index <= history_.size()) {
      require(history_[index - 1] == next, "one history: replicas apply different entries");
    } else {
      require(index == history_.size() + 1, "one history: an entry is skipped");
      check_members(by, index, next);
      require(batches_.insert(next.batch).second, "exactly once: a batch is final twice");
      history_.push_back(next);
    }
    const auto [first, last] = by.waiting.equal_range(index);
    for (auto at = first; at != last; ++at)
      post(by.id, client_id(at->second), push_answer{by.decide.generation(), next.batch, index});
    by.waiting.erase(first, last);
  }
}

/// Checks that an entry that becomes final is in the log of every live member of the chain.
void chain_world::check_members(const server& tail, std::uint64_t index, const entry& what) const {
  for (const member_id& each : tail.decide.config().members) {
    const server& member = *servers_[each.index];
    const auto& its = member.decide.config();
    const bool goes_back = member.decide.generation() > tail.decide.generation();
    const bool has_left = its.config > tail.decide.config().config
                          && std::ranges::find(its.members, each) == its.members.end();
    if (&member == &tail || !member.alive || member.id != each || goes_back || has_left)
      continue;
    const auto found = member.log.find(index);
    require(found != member.log.end() && found->second == what,
            "final: an entry that a member does not have");
  }
}

void chain_world::run(server& by, const truncate_effect& x) {
  by.log.erase(by.log.upper_bound(x.last), by.log.end());
  std::erase_if(by.pending, [&](const auto& each) { return each.second > x.last; });
  by.waiting.erase(by.waiting.upper_bound(x.last), by.waiting.end());
}

void chain_world::run(server& by, const release_effect& x) {
  by.log.erase(by.log.begin(), by.log.upper_bound(x.index));
}

void chain_world::run(server& by, const request_copy_effect& x) {
  post(by.id, x.from, copy_request{x.config});
}

void chain_world::receive(server& by, const member_id& from, const message_variant& what) {
  chain_effects effects;
  const auto now = local_time(by.rate);
  if (const auto* append = std::get_if<append_in_flight>(&what)) {
    if (by.decide.receive(from, append->what, now, effects)) {
      keep(by, append->what.index, append->payload);
    }
  } else if (const auto* committed = std::get_if<committed_message>(&what)) {
    by.decide.receive(from, *committed, now, effects);
  } else if (const auto* joined = std::get_if<joined_message>(&what)) {
    by.decide.receive(from, *joined, now, effects);
  } else if (const auto* asked = std::get_if<copy_request>(&what)) {
    if (by.decide.copy_for(from, asked->config))
      post(by.id, from, copy{asked->config, by.applied});
  } else if (const auto* image = std::get_if<copy>(&what)) {
    if (by.decide.install(image->config, image->applied.size(), now, effects))
      replace_values(by, image->applied);
  } else if (const auto* pushed = std::get_if<push_in_flight>(&what)) {
    push(by, from.index, *pushed, effects);
  } else if (const auto* asked_to_read = std::get_if<read_in_flight>(&what)) {
    read(by, from, *asked_to_read);
  } else if (const auto* told = std::get_if<desired_in_flight>(&what)) {
    reconcile(by, *told, effects);
  }
  carry_out(by, effects);
  if (statuses(by) != by.reported)
    send_report(by);
}

void chain_world::keep(server& by, std::uint64_t index, const entry& what) {
  by.log[index] = what;
  by.pending[what.batch] = index;
  if (by.log.size() > log_max)
    by.decide.wait_for_joiner();
}

void chain_world::replace_values(server& by, const std::vector<entry>& values) {
  require(values.size() >= by.applied.size()
            && std::equal(by.applied.begin(), by.applied.end(), values.begin())
            && (by.decide.generation() != generation_
                || (values.size() <= history_.size()
                    && std::equal(values.begin(), values.end(), history_.begin()))),
          "one history: a copy is not what its receiver's values become");
  ++tally_.copies;
  by.applied = values;
  by.log.clear();
  by.pending.clear();
  if (mutated(mutation::applied_not_copied))
    return;
  by.index_of_batch.clear();
  for (std::size_t i = 0; i < values.size(); ++i)
    by.index_of_batch[values[i].batch] = i + 1;
}

void chain_world::push(server& by, std::uint32_t pusher, const push_in_flight& what,
                       chain_effects& effects) {
  const auto generation = by.decide.generation();
  if (!by.decide.leads() || what.generation != generation) {
    post(by.id, client_id(pusher), push_answer{generation, what.payload.batch, 0});
  } else if (const auto done = by.index_of_batch.find(what.payload.batch);
             done != by.index_of_batch.end() && !mutated(mutation::no_deduplication)) {
    ++tally_.repeats;
    post(by.id, client_id(pusher), push_answer{generation, what.payload.batch, done->second});
  } else if (const auto open = by.pending.find(what.payload.batch);
             open != by.pending.end() && !mutated(mutation::no_deduplication)) {
    by.waiting.emplace(open->second, pusher);
  } else {
    const auto index = by.decide.last() + 1;
    keep(by, index, what.payload);
    by.waiting.emplace(index, pusher);
    by.decide.append(local_time(by.rate), effects);
    if (mutated(mutation::acknowledged_before_final))
      post(by.id, client_id(pusher), push_answer{generation, what.payload.batch, index});
  }
}

void chain_world::read(server& by, const member_id& from, const read_in_flight& what) {
  const bool answers = by.decide.may_read(local_time(by.rate))
                       && (what.strict ? by.decide.is_tail() || mutated(mutation::read_anywhere)
                                       : by.applied.size() >= what.version_min);
  post(by.id, from, read_answer{by.decide.generation(), what.number, by.applied.size(), !answers});
}

/// Begins another history; the one before is void.
void chain_world::rebuild(server& by, generation_id generation, std::vector<entry> values,
                          bool complete) {
  note(chain_member_name(by.id) + " begins generation " + std::to_string(generation.value)
       + " with " + std::to_string(values.size()));
  auto next = std::make_unique<server>(by.id, generation, std::move(values), complete);
  next->rate = by.rate;
  next->report_at = by.report_at;
  next->deaf_until = by.deaf_until;
  next->told = std::move(by.told);
  by = std::move(*next);
}

void chain_world::reconcile(server& by, const desired_in_flight& what, chain_effects& effects) {
  if (what.stamp != time_point{0})
    by.decide.renew(mutated(mutation::lease_from_arrival) ? local_time(by.rate) : what.stamp);
  const auto& [active, base_checkpoint, proposed] = what.records.front();
  if (now_ < by.deaf_until || newest(what.records.front()).config < by.decide.status().sealed)
    return; // An old message.
  const bool starts_generation =
    proposed && proposed->generation != active.generation
    && std::ranges::find(proposed->members, by.id) != proposed->members.end();
  const auto generation = starts_generation ? proposed->generation : active.generation;
  for (std::size_t i = 1; i < shard_count; ++i)
    if (newest(by.told[i]).config <= newest(what.records[i]).config)
      by.told[i] = what.records[i];
  if (generation > by.decide.generation() || (starts_generation && !by.decide.status().complete))
    rebuild(by, generation,
            starts_generation ? checkpoints_[base_checkpoint] : std::vector<entry>{},
            starts_generation);
  const auto before = by.decide.config().config;
  by.decide.activate(active, local_time(by.rate), effects);
  if (proposed)
    by.decide.propose(proposed->config);
  if (by.decide.config().config != before)
    note(chain_member_name(by.id) + " acts in " + list_of(by.decide.config()));
}

} // namespace troupe::sim
