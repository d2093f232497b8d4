// The simulated chains: events, network, faults, and the end.
#include "cli/sim/chain_world_parts.hpp"

#include <algorithm>

namespace troupe::sim {

const std::vector<minimum<chain_tally>> chain_world::minima{
  {"pushes acknowledged", &chain_tally::pushes, 200},
  {"pushes repeated", &chain_tally::repeats, 5},
  {"reads answered", &chain_tally::reads, 100},
  {"servers killed", &chain_tally::kills, 2},
  {"servers paused", &chain_tally::pauses, 2},
  {"connections cut", &chain_tally::cuts, 2},
  {"messages lost", &chain_tally::lost_messages, 5},
  {"messages doubled", &chain_tally::doubled_messages, 5},
  {"coordinators killed", &chain_tally::coordinator_kills, 2},
  {"configurations", &chain_tally::configurations, 5},
  {"replicas copied", &chain_tally::copies, 1},
  {"shards lost", &chain_tally::lost_chains, 0.02},
  {"servers drained", &chain_tally::drains, 1},
  {"servers added", &chain_tally::additions, 0.5},
  {"shards moved", &chain_tally::moves, 0.3},
  {"rollbacks", &chain_tally::rollbacks, 0.2},
  {"servers deaf", &chain_tally::deaf, 1},
  {"cuts that last", &chain_tally::lasting_cuts, 0.1},
};

chain_world::chain_world(std::uint64_t seed, bool no_faults, trace_function trace)
    : world(seed, no_faults, std::move(trace)) {
  loss_ = intensity(0.1);
  repetition_ = intensity(0.06);
  kill_rate_ = intensity(2.0);
  pause_rate_ = intensity(4.0);
  cut_rate_ = intensity(4.0);
  coordinator_kill_rate_ = intensity(3.0);
  drain_rate_ = intensity(4.0);
  rollback_rate_ = intensity(0.3);
  deaf_rate_ = intensity(1.0);
  delay_us_max_ = pick(200, 40'000);
  deaths_are_seen_ = chance(0.5);
  overtaking_ = chance(0.5);
  pushes_in_flight_max_ = pick(1, 24);
  const auto initial_members = pick(replica_count - 1, server_count);
  for (std::uint32_t i = 0; i < server_count; ++i) {
    const auto id = member_of(server_id{i}, {++incarnations_});
    auto made = std::make_unique<server>(id, generation_id{}, std::vector<entry>{}, false);
    made->rate = pick_rate();
    made->alive = i < initial_members;
    if (!made->alive) {
      made->back_at = milliseconds{pick(1000, 15'000)};
      ++tally_.additions;
    }
    servers_.push_back(std::move(made));
  }
  persisted_.resize(shard_count);
  for (std::uint32_t i = 0; i < client_count; ++i) {
    clients_.push_back(std::make_unique<client>());
    clients_.back()->index = i;
    clients_.back()->next_batch = i;
  }
  start_coordinator();
}

chain_world::~chain_world() = default;

void chain_world::run() {
  for (time_point t = tick_interval; t < quiet_end; t += tick_interval)
    at(t, [this] {
      if (!quiet_)
        inject_faults();
      for (auto& each : servers_)
        tick(*each);
      coordinator_tick();
      for (auto& each : clients_)
        client_tick(*each);
    });
  for (time_point t = checkpoint_interval; t < faults_end; t += checkpoint_interval)
    at(t, [this] { write_checkpoint(); });
  // All servers die at once, or all members of the chain.
  for (std::uint64_t left = !no_faults_ && deaths_are_seen_ && chance(0.3) ? pick(1, 3) : 0;
       left > 0; --left)
    at(milliseconds{pick(2000, 18'000)}, [this, all = chance(0.5)] {
      for (const auto& each : servers_)
        if (each->alive && (all || each->decide.status().complete))
          kill_server(each->id.index);
    });
  at(faults_end, [this] { heal(); });
  while (step())
    if (quiet_ && events() % 64 == 0 && all_is_well())
      break;
  tally_.events = events();
  tally_.lost_messages = messages_lost();
  tally_.doubled_messages = messages_doubled();
  check_end();
}

// -- network ------------------------------------------------------------------------------------

void chain_world::post(const member_id& from, const member_id& to, message_variant what) {
  world::post(chain_place_of(from), chain_place_of(to),
              [this, from, to, what = std::move(what)] { deliver(from, to, what); });
}

void chain_world::deliver(const member_id& from, const member_id& to, const message_variant& what) {
  if (to.role == role::worker)
    return client_receive(*clients_[to.index], from, what);
  if (to.role == role::coordinator)
    return coordinator_ ? coordinator_hear(from, std::get<status_in_flight>(what)) : void();
  server& by = *servers_[to.index];
  // A client addresses a server, a replica addresses an incarnation of it.
  if (!by.alive || (from.role != role::worker && by.id != to))
    return;
  if (now_ < by.paused_until)
    return at(by.paused_until, [=, this] { deliver(from, to, what); });
  receive(by, from, what);
}

// -- faults -------------------------------------------------------------------------------------

/// Writes a checkpoint of the entries that are final at the tail.
void chain_world::write_checkpoint() {
  const auto& members = persisted_.front().active.members;
  if (members.empty())
    return;
  const auto& tail = *servers_[members.back().index];
  if (tail.alive && tail.decide.is_tail() && tail.decide.generation() == generation_)
    checkpoints_.push_back(tail.applied);
}

void chain_world::inject_faults() {
  const double seconds = std::chrono::duration<double>(tick_interval).count();
  if (chance(kill_rate_ * seconds)) {
    const auto index = static_cast<std::uint32_t>(pick(0, server_count - 1));
    if (servers_[index]->alive && may_lose(*servers_[index]))
      kill_server(index);
  }
  if (chance(pause_rate_ * seconds)) {
    auto& victim = *servers_[pick(0, server_count - 1)];
    victim.paused_until = now_ + milliseconds{pick(1, 3000)};
    tally_.pauses += victim.alive ? 1 : 0;
    note(chain_member_name(victim.id) + " pauses");
  }
  if (chance(cut_rate_ * seconds)) {
    const auto from = chance(0.4) ? chain_coordinator_place
                                  : static_cast<std::uint32_t>(pick(0, chain_coordinator_place));
    const auto to = static_cast<std::uint32_t>(pick(0, chain_coordinator_place));
    const auto until = now_ + milliseconds{pick(200, 4200)};
    make_cut(from, to, {until, chance(0.5)});
    tally_.cuts += from == to ? 0 : 1; // No process writes to itself.
  }
  if (coordinator_ && chance(drain_rate_ * seconds)) {
    // At most two leave at a time, so that another server can always take over.
    std::set<server_id> leaving;
    for (std::uint64_t left = pick(0, 2); left > 0; --left)
      leaving.insert({static_cast<std::uint32_t>(pick(0, server_count - 1))});
    if (coordinator_->drain(leaving)) {
      tally_.drains += leaving.empty() ? 0 : 1;
      draining_ = std::move(leaving);
    }
  }
  if (generation_ != generation_id{} && chance(rollback_rate_ * seconds)) {
    roll_back(checkpoints_.size() - 1);
    if (chance(0.5)) // The newest checkpoint cannot be read.
      at(now_ + milliseconds{pick(1, 200)},
         [this, older = pick(0, checkpoints_.size() - 1)] { roll_back(older); });
  }
  if (chance(deaf_rate_ * seconds)) {
    auto& victim = *servers_[pick(0, server_count - 1)];
    victim.deaf_until = now_ + milliseconds{pick(500, 8000)};
    tally_.deaf += victim.alive ? 1 : 0;
    note(chain_member_name(victim.id) + " is deaf");
  }
  if (coordinator_ && chance(coordinator_kill_rate_ * seconds)) {
    coordinator_.reset();
    ++tally_.coordinator_kills;
    note("the coordinator is killed");
    at(now_ + milliseconds{pick(1, chance(0.5) ? 300 : 3000)}, [this] {
      if (!coordinator_)
        start_coordinator();
    });
  }
}

void chain_world::heal() {
  note("quiet from here on");
  quiet_ = true;
  end_cuts();
  // A server that stays deaf must not hold up the others, if these can do without it.
  bool one_may = draining_.empty();
  for (auto& each : servers_) {
    each->paused_until = std::min(each->paused_until, now_);
    const bool stays = one_may && now_ < each->deaf_until && may_lose(*each);
    one_may = one_may && !stays;
    each->deaf_until = stays ? quiet_end : now_;
  }
  // Two servers that cannot talk to each other must not hold up the others either.
  const bool one_is_deaf =
    std::ranges::any_of(servers_, [&](auto& x) { return now_ < x->deaf_until; });
  if (!no_faults_ && draining_.empty() && !one_is_deaf && chance(0.5)) {
    const auto from = static_cast<std::uint32_t>(pick(0, server_count - 1));
    const auto to = (from + static_cast<std::uint32_t>(pick(1, server_count - 1))) % server_count;
    make_cut(from, to, {quiet_end});
    ++tally_.lasting_cuts;
    note("server " + std::to_string(from) + " is not heard by server " + std::to_string(to));
  }
  if (!coordinator_)
    start_coordinator();
}

bool chain_world::is_balanced() const {
  std::size_t least = shard_count, most = 0;
  for (const auto& each : servers_) {
    if (!each->alive || now_ < each->deaf_until || draining_.contains({each->id.index}))
      continue;
    const auto load = static_cast<std::size_t>(std::ranges::count_if(persisted_, [&](auto& x) {
      return std::ranges::find(x.active.members, each->id) != x.active.members.end();
    }));
    least = std::min(least, load);
    most = std::max(most, load);
  }
  const bool all_can_join = !any_cut(); // No server joins behind a tail that does not hear it.
  return (most <= least + 1 || !all_can_join)
         && std::ranges::none_of(persisted_, [](auto& x) { return x.proposed || x.active.joiner; });
}

bool chain_world::all_is_well() const {
  const auto& record = persisted_.front();
  const auto leaves = [&](const member_id& who) { return draining_.contains({who.index}); };
  const bool all_know = std::ranges::all_of(clients_, [&](const auto& x) {
    return x->generation == generation_ && std::ranges::includes(batches_, x->acknowledged);
  });
  return all_know && is_balanced() && record.active.members.size() == replica_count
         && std::ranges::none_of(record.active.members, leaves)
         && std::ranges::all_of(clients_, [](const auto& x) { return x->pushes.empty(); })
         && std::ranges::all_of(record.active.members, [&](const member_id& who) {
              const auto& at = *servers_[who.index];
              return at.alive && at.id == who && at.applied == history_
                     && at.decide.last() == history_.size();
            });
}

void chain_world::check_end() {
  if (!all_is_well()) {
    for (const chain_metadata& each : persisted_)
      note("active " + list_of(each.active)
           + (each.proposed ? ", proposed " + list_of(*each.proposed) : ""));
    note("history " + std::to_string(history_.size()));
    for (const auto& x : servers_)
      note(chain_member_name(x->id) + (x->alive ? "" : " (dead)") + " in configuration "
           + std::to_string(x->decide.status().config.value) + ", sealed "
           + std::to_string(x->decide.status().sealed.value) + ", final "
           + std::to_string(x->decide.committed()) + " of " + std::to_string(x->decide.last())
           + (x->decide.status().joiner_synced ? ", joiner synced" : ""));
  }
  require(all_is_well(), "liveness: the cluster does not come to rest");
}

} // namespace troupe::sim
