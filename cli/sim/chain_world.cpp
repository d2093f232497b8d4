#include "cli/sim/chain_world.hpp"

#include "actors/mutation.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::sim {

namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t server_count = 5;
constexpr std::uint32_t client_count = 3;
constexpr std::uint32_t replica_count = 3;
constexpr std::uint32_t coordinator_place = server_count + client_count;
constexpr std::size_t pushes_in_flight_max = 4;
constexpr time_point faults_end = 20s;
constexpr time_point quiet_end = 30s;
constexpr time_point silence_max = 1300ms; ///< 1.3 of what leases are counted from.
constexpr time_point tick_interval = 20ms;
constexpr time_point report_interval = 100ms;
constexpr time_point patience = 300ms;

const member_id coordinator_id{role::coordinator, 0, {1}};

member_id client_id(std::uint32_t index) { return {role::worker, index, {1}}; }

std::uint32_t place_of(const member_id& who) {
  return who.role == role::server   ? who.index
         : who.role == role::worker ? server_count + who.index
                                    : coordinator_place;
}

void require(bool holds, const std::string& what) {
  if (!holds)
    throw violation(what);
}

std::string name_of(const member_id& who) {
  const char* const kind = who.role == role::server   ? "server "
                           : who.role == role::worker ? "client "
                                                      : "coordinator ";
  return kind + std::to_string(who.index) + "." + std::to_string(who.incarnation.value);
}

std::string list_of(const chain_config& config) {
  std::string text = "epoch " + std::to_string(config.epoch.value) + ":";
  for (const member_id& each : config.members)
    text += " " + std::to_string(each.index) + "." + std::to_string(each.incarnation.value);
  if (config.joiner)
    text += " +" + std::to_string(config.joiner->index) + "."
            + std::to_string(config.joiner->incarnation.value);
  return text;
}

} // namespace

void tally::add(const tally& other) {
  events += other.events;
  pushes += other.pushes;
  reads += other.reads;
  repeats += other.repeats;
  kills += other.kills;
  pauses += other.pauses;
  cuts += other.cuts;
  coordinator_kills += other.coordinator_kills;
  configurations += other.configurations;
  copies += other.copies;
  drains += other.drains;
}

struct chain_world::server {
  server(member_id who, std::vector<entry> values, bool complete)
      : id(who), decide(who, values.size(), complete), applied(std::move(values)) {
    for (std::size_t i = 0; i < applied.size(); ++i)
      marks[applied[i].batch] = i + 1;
  }

  member_id id;
  chain decide;
  std::vector<entry> applied;                     ///< The state: entry i + 1 at i.
  std::map<std::uint64_t, std::uint64_t> marks;   ///< Index by batch, of `applied` ...
  std::map<std::uint64_t, std::uint64_t> pending; ///< ... and of what is not final yet.
  std::map<std::uint64_t, entry> log;
  std::multimap<std::uint64_t, std::uint32_t> waiting; ///< Clients by index.
  chain_status reported;
  bool alive = true;
  time_point paused_until{0};
  time_point back_at{0};
  double rate = 1.0;
  time_point report_at{0};
};

struct chain_world::client {
  struct open_read {
    std::uint64_t number = 0;
    std::uint64_t version_min = 0;
    time_point until{0};
  };
  std::uint32_t index = 0;
  std::uint32_t head = 0; ///< A guess.
  std::uint64_t next_batch = 0;
  std::map<std::uint64_t, time_point> pushes; ///< When each is to be sent again, by batch.
  std::optional<open_read> read;
  std::uint64_t reads = 0;
  std::uint64_t version = 0; ///< It has seen this one.
};

chain_world::chain_world(std::uint64_t seed, bool calm,
                         std::function<void(const std::string&)> trace)
    : random_(seed), trace_(std::move(trace)), calm_(calm) {
  loss_ = intensity(0.1);
  repetition_ = intensity(0.06);
  kill_rate_ = intensity(2.0);
  pause_rate_ = intensity(2.0);
  cut_rate_ = intensity(4.0);
  coordinator_kill_rate_ = intensity(0.5);
  drain_rate_ = intensity(4.0);
  delay_us_max_ = pick(200, 40'000);
  deaths_are_seen_ = chance(0.5);
  overtaking_ = chance(0.5);
  chain_record first{{{1}, {}, {}}, {}};
  for (std::uint32_t i = 0; i < server_count; ++i) {
    const member_id id{role::server, i, {++incarnations_}};
    const bool is_member = i < replica_count;
    if (is_member)
      first.active.members.push_back(id);
    servers_.push_back(std::make_unique<server>(id, std::vector<entry>{}, is_member));
    servers_.back()->rate = std::uniform_real_distribution<>(0.9, 1.1)(random_);
  }
  persisted_ = {first};
  for (std::uint32_t i = 0; i < client_count; ++i) {
    clients_.push_back(std::make_unique<client>());
    clients_.back()->index = i;
    clients_.back()->next_batch = i;
  }
  start_coordinator();
}

chain_world::~chain_world() = default;

/// Off in three of ten histories, else anything up to `max`, small ones as often as large ones.
double chain_world::intensity(double max) {
  return calm_ || chance(0.3)
           ? 0.0
           : max * std::exp(-4.0 * std::uniform_real_distribution<>(0, 1)(random_));
}

void chain_world::at(time_point when, std::function<void()> what) {
  events_.push({when, ++order_, std::move(what)});
}

void chain_world::note(const std::string& what) {
  if (trace_)
    trace_(std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(now_).count())
           + " us " + what);
}

void chain_world::run() {
  for (time_point t = tick_interval; t < quiet_end; t += tick_interval)
    at(t, [this] {
      if (!quiet_)
        misfortune();
      for (auto& each : servers_)
        tick(*each);
      coordinator_tick();
      for (auto& each : clients_)
        client_tick(*each);
    });
  at(faults_end, [this] { heal(); });
  while (!events_.empty()) {
    const event next = events_.top();
    events_.pop();
    now_ = next.at;
    ++tally_.events;
    hash_ = (hash_ ^ static_cast<std::uint64_t>(now_.count()) ^ next.order) * 0x100000001b3ull;
    next.happen();
    if (quiet_ && tally_.events % 64 == 0 && all_is_well())
      break;
  }
  check_end();
}

// -- network ------------------------------------------------------------------------------------

void chain_world::post(const member_id& from, const member_id& to, letter what) {
  if (cut_.contains({place_of(from), place_of(to)}) || (!quiet_ && chance(loss_)))
    return;
  const int copies = !quiet_ && chance(repetition_) ? 2 : 1;
  for (int i = 0; i < copies; ++i) {
    auto when = now_ + std::chrono::microseconds{pick(50, delay_us_max_)};
    if (quiet_ || !overtaking_) {
      auto& last = in_order_[{place_of(from), place_of(to)}];
      when = last = std::max(when, last);
    }
    at(when, [=, this] { deliver(from, to, what); });
  }
}

void chain_world::deliver(const member_id& from, const member_id& to, const letter& what) {
  if (to.role == role::worker)
    return client_receive(*clients_[to.index], from, what);
  if (to.role == role::coordinator)
    return coordinator_ ? coordinator_hear(from, std::get<report_letter>(what)) : void();
  server& by = *servers_[to.index];
  // Clients find a server by its address, replicas by its incarnation.
  if (!by.alive || (from.role != role::worker && by.id != to))
    return;
  if (now_ < by.paused_until)
    return at(by.paused_until, [=, this] { deliver(from, to, what); });
  receive(by, from, what);
}

// -- servers ------------------------------------------------------------------------------------

time_point chain_world::local_time(double rate) const {
  return time_point{static_cast<std::int64_t>(static_cast<double>(now_.count()) * rate)};
}

void chain_world::start_server(std::uint32_t index) {
  auto& seat = servers_[index];
  // What it had on its disk, if that is still there.
  auto kept = chance(0.5) ? seat->applied : std::vector<entry>{};
  auto fresh = std::make_unique<server>(member_id{role::server, index, {++incarnations_}},
                                        std::move(kept), false);
  fresh->rate = seat->rate;
  fresh->paused_until = seat->paused_until;
  seat = std::move(fresh);
  note(name_of(seat->id) + " starts with " + std::to_string(seat->applied.size()));
}

void chain_world::kill_server(std::uint32_t index) {
  auto& victim = *servers_[index];
  note(name_of(victim.id) + " is killed");
  ++tally_.kills;
  victim.alive = false;
  victim.back_at = now_ + milliseconds{pick(1, 3000)};
  if (deaths_are_seen_)
    at(now_ + milliseconds{pick(1, 50)}, [this, who = victim.id] {
      dead_.insert(who);
      coordinator_told_of_death(who);
    });
}

/// The protocol loses nothing while somebody holds everything that was acknowledged and is not
/// taken for dead.
bool chain_world::may_kill(const server& victim) const {
  const auto& record = persisted_.front();
  const auto stays = [](const chain_config& config, const member_id& who) {
    return std::ranges::find(config.members, who) != config.members.end();
  };
  return std::ranges::any_of(servers_, [&](const auto& x) {
    return x.get() != &victim && x->alive && x->decide.last() >= acknowledged_
           && stays(record.active, x->id) && (!record.proposed || stays(*record.proposed, x->id));
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
  if (now_ >= by.report_at || by.decide.status() != by.reported)
    send_report(by);
}

void chain_world::send_report(server& by) {
  by.report_at = now_ + report_interval;
  by.reported = by.decide.status();
  post(by.id, coordinator_id, report_letter{by.reported, local_time(by.rate)});
}

void chain_world::carry_out(server& by, chain_effects& effects) {
  for (const auto& effect : effects)
    std::visit([&](const auto& x) { run(by, x); }, effect);
  effects.clear();
}

void chain_world::run(server& by, const append_effect& x) {
  const auto found = by.log.find(x.what.index);
  require(found != by.log.end(), "log: an entry is gone that is still to be sent");
  post(by.id, x.to, append_letter{x.what, found->second});
}

void chain_world::run(server& by, const chain_message_effect& x) {
  std::visit([&](const auto& what) { post(by.id, x.to, what); }, x.what);
}

void chain_world::run(server& by, const commit_effect& x) {
  for (std::uint64_t index = by.applied.size() + 1; index <= x.index; ++index) {
    const auto found = by.log.find(index);
    require(found != by.log.end(), "log: an entry is gone that is still to be applied");
    const entry next = found->second;
    require(by.marks.emplace(next.batch, index).second, "exactly once: a batch is applied twice");
    by.applied.push_back(next);
    by.pending.erase(next.batch);
    if (index <= history_.size()) {
      require(history_[index - 1] == next, "one history: replicas apply different entries");
    } else {
      require(index == history_.size() + 1, "one history: an entry is skipped");
      require(batches_.insert(next.batch).second, "exactly once: a batch is final twice");
      history_.push_back(next);
    }
    const auto [first, last] = by.waiting.equal_range(index);
    for (auto at = first; at != last; ++at)
      post(by.id, client_id(at->second), push_answer{next.batch, index});
    by.waiting.erase(first, last);
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
  post(by.id, x.from, copy_request{x.epoch});
}

void chain_world::receive(server& by, const member_id& from, const letter& what) {
  chain_effects effects;
  const auto now = local_time(by.rate);
  if (const auto* append = std::get_if<append_letter>(&what)) {
    if (by.decide.receive(from, append->what, now, effects)) {
      by.log[append->what.index] = append->payload;
      by.pending[append->payload.batch] = append->what.index;
    }
  } else if (const auto* committed = std::get_if<committed_message>(&what)) {
    by.decide.receive(from, *committed, now, effects);
  } else if (const auto* joined = std::get_if<joined_message>(&what)) {
    by.decide.receive(from, *joined, now, effects);
  } else if (const auto* asked = std::get_if<copy_request>(&what)) {
    if (by.decide.copy_for(from, asked->epoch))
      post(by.id, from, copy{asked->epoch, by.applied});
  } else if (const auto* image = std::get_if<copy>(&what)) {
    if (by.decide.install(image->epoch, image->applied.size(), now, effects))
      replace_values(by, image->applied);
  } else if (const auto* pushed = std::get_if<push_letter>(&what)) {
    push(by, from.index, *pushed, effects);
  } else if (const auto* asked_to_read = std::get_if<read_letter>(&what)) {
    read(by, from, *asked_to_read);
  } else if (const auto* told = std::get_if<orders_letter>(&what)) {
    obey(by, *told, effects);
  }
  carry_out(by, effects);
  if (by.decide.status() != by.reported)
    send_report(by);
}

void chain_world::replace_values(server& by, const std::vector<entry>& values) {
  require(values.size() >= by.applied.size()
            && std::equal(by.applied.begin(), by.applied.end(), values.begin()),
          "one history: a copy is not what its receiver's values become");
  ++tally_.copies;
  by.applied = values;
  by.log.clear();
  by.pending.clear();
  if (mutated(mutation::marks_not_copied))
    return;
  by.marks.clear();
  for (std::size_t i = 0; i < values.size(); ++i)
    by.marks[values[i].batch] = i + 1;
}

void chain_world::push(server& by, std::uint32_t pusher, const push_letter& what,
                       chain_effects& effects) {
  if (!by.decide.leads()) {
    post(by.id, client_id(pusher), push_answer{what.payload.batch, 0});
  } else if (const auto done = by.marks.find(what.payload.batch);
             done != by.marks.end() && !mutated(mutation::no_deduplication)) {
    ++tally_.repeats;
    post(by.id, client_id(pusher), push_answer{what.payload.batch, done->second});
  } else if (const auto open = by.pending.find(what.payload.batch);
             open != by.pending.end() && !mutated(mutation::no_deduplication)) {
    by.waiting.emplace(open->second, pusher);
  } else {
    const auto index = by.decide.last() + 1;
    by.log[index] = what.payload;
    by.pending[what.payload.batch] = index;
    by.waiting.emplace(index, pusher);
    by.decide.append(local_time(by.rate), effects);
    if (mutated(mutation::acknowledged_before_final))
      post(by.id, client_id(pusher), push_answer{what.payload.batch, index});
  }
}

void chain_world::read(server& by, const member_id& from, const read_letter& what) {
  const bool answers = by.decide.may_read(local_time(by.rate))
                       && (what.strict ? by.decide.is_tail() || mutated(mutation::read_anywhere)
                                       : by.applied.size() >= what.version_min);
  post(by.id, from, read_answer{what.number, by.applied.size(), !answers});
}

void chain_world::obey(server& by, const orders_letter& what, chain_effects& effects) {
  const auto before = by.decide.config().epoch;
  by.decide.activate(what.record.active, local_time(by.rate), effects);
  if (what.record.proposed)
    by.decide.propose(what.record.proposed->epoch);
  if (what.stamp != time_point{0})
    by.decide.renew(mutated(mutation::lease_from_arrival) ? local_time(by.rate) : what.stamp);
  if (by.decide.config().epoch != before)
    note(name_of(by.id) + " acts in " + list_of(by.decide.config()));
}

// -- coordinator --------------------------------------------------------------------------------

void chain_world::start_coordinator() {
  coordinator_ = std::make_unique<placement>(replica_count, persisted_);
  coordinator_->drain(draining_);
  coordinator_since_ = now_;
  heard_.clear();
  for (const member_id& each : persisted_.front().active.members)
    heard_[each] = mutated(mutation::silence_after_restart) ? now_ - silence_max : now_;
  for (const auto* config : {&persisted_.front().active,
                             persisted_.front().proposed ? &*persisted_.front().proposed : nullptr})
    if (config != nullptr && config->joiner)
      heard_[*config->joiner] = now_;
  for (const member_id& each : dead_)
    coordinator_->dead(each);
  note("the coordinator starts");
}

void chain_world::coordinator_hear(const member_id& from, const report_letter& what) {
  if (coordinator_->is_dead(from))
    return; // Its last words.
  heard_[from] = now_;
  coordinator_->heard(from, {what.status});
  coordinator_decides();
  post(coordinator_id, from, orders_letter{coordinator_->records().front(), what.stamp});
}

void chain_world::coordinator_told_of_death(const member_id& who) {
  if (!coordinator_)
    return;
  note(name_of(who) + " is known to be dead");
  coordinator_->dead(who);
  heard_.erase(who);
  coordinator_decides();
}

void chain_world::coordinator_decides() {
  bool changed = false;
  while (coordinator_->decide())
    changed = true;
  if (!changed)
    return;
  ++tally_.configurations;
  if (!mutated(mutation::sent_before_persisted) || chance(0.5))
    persisted_ = coordinator_->records();
  const auto& record = coordinator_->records().front();
  note("active " + list_of(record.active)
       + (record.proposed ? ", proposed " + list_of(*record.proposed) : ""));
  for (const auto& [who, unused] : heard_)
    post(coordinator_id, who, orders_letter{record, {}});
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
  const auto to_server = [](std::uint32_t index) { return member_id{role::server, index, {}}; };
  if (!quiet_ && who.pushes.size() < pushes_in_flight_max && chance(0.5)) {
    who.pushes[who.next_batch] = {};
    who.next_batch += client_count;
  }
  for (auto& [batch, retry] : who.pushes) {
    if (now_ < retry)
      continue;
    if (retry != time_point{0})
      who.head = static_cast<std::uint32_t>(pick(0, server_count - 1));
    retry = now_ + patience;
    post(id, to_server(who.head), push_letter{{batch}});
  }
  if (who.read && now_ < who.read->until)
    return;
  const bool strict = chance(0.5);
  who.read = {++who.reads, strict ? acknowledged_ : who.version, now_ + patience};
  post(id, to_server(static_cast<std::uint32_t>(pick(0, server_count - 1))),
       read_letter{who.reads, who.version, strict});
}

void chain_world::client_receive(client& who, const member_id& from, const letter& what) {
  if (const auto* pushed = std::get_if<push_answer>(&what)) {
    if (pushed->version == 0) {
      if (const auto open = who.pushes.find(pushed->batch); open != who.pushes.end())
        open->second = std::min(open->second, now_ + milliseconds{20});
      return;
    }
    require(pushed->version <= history_.size()
              && history_[pushed->version - 1].batch == pushed->batch,
            "acknowledged: a push is not final");
    who.head = from.index;
    who.pushes.erase(pushed->batch);
    acknowledged_ = std::max(acknowledged_, pushed->version);
    who.version = std::max(who.version, pushed->version);
    ++tally_.pushes;
  } else if (const auto* got = std::get_if<read_answer>(&what)) {
    if (!who.read || who.read->number != got->number)
      return;
    if (!got->refused) {
      require(got->version >= who.read->version_min, "reads: one is older than what was known");
      who.version = std::max(who.version, got->version);
      ++tally_.reads;
    }
    who.read.reset();
  }
}

// -- misfortune ---------------------------------------------------------------------------------

void chain_world::misfortune() {
  const double seconds = std::chrono::duration<double>(tick_interval).count();
  if (chance(kill_rate_ * seconds)) {
    const auto index = static_cast<std::uint32_t>(pick(0, server_count - 1));
    if (servers_[index]->alive && may_kill(*servers_[index]))
      kill_server(index);
  }
  if (chance(pause_rate_ * seconds)) {
    auto& victim = *servers_[pick(0, server_count - 1)];
    victim.paused_until = now_ + milliseconds{pick(1, 3000)};
    ++tally_.pauses;
    note(name_of(victim.id) + " pauses");
  }
  if (chance(cut_rate_ * seconds)) {
    const auto from = static_cast<std::uint32_t>(pick(0, coordinator_place));
    const auto to = static_cast<std::uint32_t>(pick(0, coordinator_place));
    const bool both = chance(0.5);
    ++tally_.cuts;
    cut_.insert({from, to});
    if (both)
      cut_.insert({to, from});
    at(now_ + milliseconds{pick(200, 4200)}, [=, this] {
      cut_.erase({from, to});
      cut_.erase({to, from});
    });
  }
  if (coordinator_ && chance(drain_rate_ * seconds)) {
    // Two may be leaving at a time, so that there is always somebody to take over.
    draining_.clear();
    for (std::uint64_t left = pick(0, 2); left > 0; --left)
      draining_.insert({static_cast<std::uint32_t>(pick(0, server_count - 1))});
    coordinator_->drain(draining_);
    ++tally_.drains;
  }
  if (coordinator_ && chance(coordinator_kill_rate_ * seconds)) {
    coordinator_.reset();
    ++tally_.coordinator_kills;
    note("the coordinator is killed");
    at(now_ + milliseconds{pick(1, 3000)}, [this] {
      if (!coordinator_)
        start_coordinator();
    });
  }
}

void chain_world::heal() {
  note("quiet from here on");
  quiet_ = true;
  cut_.clear();
  for (auto& each : servers_)
    each->paused_until = std::min(each->paused_until, now_);
  if (!coordinator_)
    start_coordinator();
}

bool chain_world::all_is_well() const {
  const auto& record = persisted_.front();
  const auto leaves = [&](const member_id& who) { return draining_.contains({who.index}); };
  return !record.proposed && record.active.members.size() == replica_count
         && std::ranges::none_of(record.active.members, leaves)
         && std::ranges::all_of(clients_, [](const auto& x) { return x->pushes.empty(); })
         && std::ranges::all_of(record.active.members, [&](const member_id& who) {
              const auto& at = *servers_[who.index];
              return at.alive && at.id == who && at.applied.size() == history_.size()
                     && at.decide.last() == history_.size();
            });
}

void chain_world::check_end() {
  if (!all_is_well()) {
    note("active " + list_of(persisted_.front().active) + ", history "
         + std::to_string(history_.size()));
    for (const auto& x : servers_)
      note(name_of(x->id) + (x->alive ? "" : " (dead)") + " in epoch "
           + std::to_string(x->decide.status().epoch.value) + ", sealed "
           + std::to_string(x->decide.status().sealed.value) + ", final "
           + std::to_string(x->decide.committed()) + " of " + std::to_string(x->decide.last())
           + (x->decide.status().joint ? ", joint" : ""));
  }
  require(all_is_well(), "liveness: the cluster does not come to rest");
}

} // namespace troupe::sim
