// Coordinator and clients of the simulated chains.
#include "actors/protocol/mutation.hpp"
#include "cli/sim/chain_world_parts.hpp"

#include <algorithm>

namespace troupe::sim {

// -- coordinator --------------------------------------------------------------------------------

void chain_world::start_coordinator() {
  coordinator_ = std::make_unique<placement>(
    placement_options{replica_count, seal_time, apart_time}, persisted_, draining_);
  heard_.clear();
  const auto hear = [&](const chain_config& config) {
    for (const member_id& each : config.members)
      heard_[each] = mutated(mutation::silence_after_restart) ? now_ - silence_max : now_;
    if (config.joiner)
      heard_[*config.joiner] = now_;
  };
  for (const chain_metadata& each : persisted_) {
    hear(each.active);
    if (each.proposed)
      hear(*each.proposed);
  }
  for (const member_id& each : dead_)
    coordinator_->dead(each);
  for (const auto& each : servers_)
    if (each->alive)
      expect(each->id);
  note("the coordinator starts");
}

void chain_world::expect(const member_id& who) {
  expected_until_[{who.index}] = now_ + expected_time;
}

void chain_world::coordinator_hear(const member_id& from, const status_in_flight& what) {
  if (coordinator_->is_dead(from))
    return; // The report was sent before its death.
  heard_.try_emplace(from, now_);
  coordinator_->heard(from, what.statuses);
  coordinator_decides();
  const bool is_trusted = coordinator_->is_trusted(from);
  if (is_trusted)
    heard_[from] = now_;
  const bool renews = is_trusted || mutated(mutation::late_keeps_lease);
  post(coordinator_id, from,
       desired_in_flight{coordinator_->records(), renews ? what.stamp : time_point{0}});
}

void chain_world::coordinator_told_of_death(const member_id& who) {
  if (!coordinator_)
    return;
  note(chain_member_name(who) + " is known to be dead");
  coordinator_->dead(who);
  heard_.erase(who);
  expect(who);
  coordinator_decides();
}

void chain_world::roll_back(std::uint64_t checkpoint) {
  if (!coordinator_)
    return;
  bool changed = false;
  for (std::uint32_t i = 0; i < shard_count; ++i)
    changed = coordinator_->begin_again(i, checkpoint) || changed;
  note("all go back to checkpoint " + std::to_string(checkpoint));
  tally_.rollbacks += changed ? 1 : 0;
  coordinator_decides(changed);
}

void chain_world::coordinator_decides(bool changed) {
  std::erase_if(expected_until_, [&](const auto& x) { return now_ >= x.second; });
  std::set<server_id> expected;
  for (const auto& [each, unused] : expected_until_)
    expected.insert(each);
  coordinator_->expect(std::move(expected));
  for (const std::uint32_t index : coordinator_->lost_chains()) {
    const bool is_lost = index == 0 && generation_ != generation_id{};
    const bool begins = coordinator_->begin_again(index, checkpoints_.size() - 1);
    const auto lives = [&](const member_id& who) {
      return servers_[who.index]->alive && servers_[who.index]->id == who;
    };
    require(std::ranges::none_of(coordinator_->records()[index].active.members, lives),
            "lost: a chain of which somebody is alive");
    tally_.lost_chains += is_lost && begins ? 1 : 0;
    changed = changed || begins;
  }
  while (coordinator_->decide(now_))
    changed = true;
  if (!changed)
    return;
  ++tally_.configurations;
  if (!mutated(mutation::sent_before_persisted) || chance(0.5))
    persisted_ = coordinator_->records();
  const auto& record = coordinator_->records().front();
  note("active " + list_of(record.active)
       + (record.proposed ? ", proposed " + list_of(*record.proposed) : ""));
  tally_.moves += record.active.joiner && record.active.members.size() == replica_count ? 1 : 0;
  if (record.active.generation != generation_) {
    generation_ = record.active.generation;
    history_ = checkpoints_[record.base_checkpoint];
    batches_.clear();
    for (const entry& each : history_)
      batches_.insert(each.batch);
    acknowledged_ = 0;
  }
  for (const auto& [who, unused] : heard_)
    post(coordinator_id, who, desired_in_flight{coordinator_->records(), {}});
}

void chain_world::coordinator_tick() {
  if (!coordinator_)
    return;
  for (const auto& [who, when] : heard_)
    if (now_ - when > (mutated(mutation::silence_shorter_than_lease) ? 500ms : silence_max))
      coordinator_->silent(who);
  coordinator_decides();
}

// -- clients ------------------------------------------------------------------------------------

void chain_world::client_tick(client& who) {
  const auto id = client_id(who.index);
  const auto to_server = [](std::uint32_t index) { return member_of(server_id{index}); };
  for (int i = 0; i < 3 && !quiet_ && who.pushes.size() < pushes_in_flight_max_ && chance(0.5);
       ++i) {
    who.pushes[who.next_batch] = {};
    who.next_batch += client_count;
  }
  for (auto& [batch, retry] : who.pushes) {
    if (now_ < retry)
      continue;
    if (retry != time_point{0})
      who.head = (who.head + 1) % server_count;
    retry = now_ + client_patience;
    post(id, to_server(who.head), push_in_flight{{batch}, who.generation});
  }
  if (who.read && now_ < who.read->until)
    return;
  const bool strict = chance(0.5);
  who.read = {++who.reads, strict && who.generation == generation_ ? acknowledged_ : who.version,
              now_ + client_patience, strict, told_};
  // A server that takes itself for the tail answers a strict read.
  const auto one = static_cast<std::uint32_t>(pick(0, server_count - 1));
  for (std::uint32_t i = 0; i < server_count; ++i)
    if (strict || i == one)
      post(id, to_server(i), read_in_flight{who.reads, who.version, strict});
}

bool chain_world::is_present(client& who, generation_id generation) const {
  if (generation > who.generation && generation == generation_) {
    who.generation = generation;
    who.version = 0;
    who.read.reset();
    // The ledger does the same: it keeps a batch until it is in a checkpoint.
    for (const std::uint64_t batch : who.acknowledged)
      if (!batches_.contains(batch))
        who.pushes[batch] = {};
    std::erase_if(who.acknowledged, [&](std::uint64_t batch) { return !batches_.contains(batch); });
  }
  return generation == who.generation;
}

void chain_world::client_receive(client& who, const member_id& from, const message_variant& what) {
  if (const auto* pushed = std::get_if<push_answer>(&what)) {
    if (!is_present(who, pushed->generation))
      return;
    if (pushed->version == 0) {
      if (const auto open = who.pushes.find(pushed->batch); open != who.pushes.end())
        open->second = std::min(open->second, now_ + milliseconds{20});
      return;
    }
    told_ = std::max(told_, pushed->generation);
    who.head = from.index;
    who.pushes.erase(pushed->batch);
    who.acknowledged.insert(pushed->batch);
    if (who.generation == generation_) { // Else the push is rolled back.
      require(pushed->version <= history_.size()
                && history_[pushed->version - 1].batch == pushed->batch,
              "acknowledged: a push is not final");
      acknowledged_ = std::max(acknowledged_, pushed->version);
    }
    who.version = std::max(who.version, pushed->version);
    ++tally_.pushes;
  } else if (const auto* got = std::get_if<read_answer>(&what)) {
    const bool is_answered = is_present(who, got->generation);
    if (!is_answered || !who.read || who.read->number != got->number
        || (got->refused && who.read->strict))
      return;
    if (!got->refused) {
      require(!who.read->strict || got->generation >= who.read->generation_min,
              "reads: a strict one is of a history that is over");
      told_ = std::max(told_, got->generation);
      require(got->version >= who.read->version_min, "reads: one is older than what was known");
      require(who.generation != generation_ || got->version <= history_.size(),
              "reads: one is of what is not final");
      if (who.read->strict && who.generation == generation_)
        acknowledged_ = std::max(acknowledged_, got->version);
      who.version = std::max(who.version, got->version);
      ++tally_.reads;
    }
    who.read.reset();
  }
}

} // namespace troupe::sim
