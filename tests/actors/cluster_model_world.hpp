// The model's world: mail, storage, the launcher, misfortune and time.
#pragma once

#include "tests/actors/cluster_model.hpp"
#include "actors/store/clock_table.hpp"
#include "tests/actors/cluster_model_servers.hpp"

namespace troupe::model {

using namespace std::chrono_literals;

// -- mail ---------------------------------------------------------------------------------------

inline void world::post(mail what) {
  // Links between servers are quick, and mostly in order: else small jobs would take minutes.
  const bool is_quick = std::holds_alternative<peer_letter>(what) && !chance(0.05);
  const int copies = chance(options_.repetition) ? 2 : !is_quick && chance(options_.loss) ? 0 : 1;
  for (int i = 0; i < copies; ++i) {
    const milliseconds delay{is_quick ? 2 : pick(0, options_.delay_ms_max)};
    mail_.push_back({now_ + delay, ++letters_, what});
  }
}

inline void world::deliver() {
  std::vector<letter> due;
  const auto is_due = [&](const letter& x) { return x.at <= now_; };
  std::copy_if(mail_.begin(), mail_.end(), std::back_inserter(due), is_due);
  std::erase_if(mail_, is_due);
  std::sort(due.begin(), due.end(), [](const letter& a, const letter& b) {
    return std::pair(a.at, a.order) < std::pair(b.at, b.order);
  });
  for (const auto& one : due)
    std::visit([this](const auto& what) { deliver(what); }, one.what);
}

inline void world::deliver(const report& what) {
  if (!coordinator_)
    return;
  coordinator_effects effects;
  coordinator_->receive(what, now_, effects);
  carry_out(effects);
}

inline void world::deliver(const orders& what) {
  const auto server = servers_.find(what.to.index);
  auto* worker = find_worker(what.to);
  if (what.to.role == role::server && server != servers_.end() && server->second.id == what.to) {
    obey(server->second, what);
  } else if (what.to.role == role::worker && worker != nullptr) {
    obey(*worker, what);
  } else if (what.to == observer_) {
    phase_seen_ = std::get<observer_orders>(what.body).phase;
    told_to_stop_ = told_to_stop_ || what.stop;
    require(what.failed.empty(), "the job failed: " + what.failed);
  }
}

inline void world::deliver(const peer_letter& what) {
  const auto server = servers_.find(what.to.index);
  if (server == servers_.end() || server->second.id != what.to)
    return;
  const auto at = server->second.replicas.find(what.chain);
  if (at != server->second.replicas.end())
    take(server->second, *at, what);
}

// -- the coordinator and its storage ------------------------------------------------------------

inline void world::start_coordinator(bool resume) {
  coordinator_options how;
  how.ledger.lease_batches = options_.lease_batches;
  how.liveness_timeout = 1500ms;
  how.gather_timeout = 1000ms;
  how.recovery_timeout = 800ms;
  how.return_timeout = 1500ms;
  how.audit_grace = 400ms;
  how.checkpoint_interval = 400ms;
  how.checkpoint_clocks = options_.checkpoint_clocks;
  how.resume = resume;
  if (options_.slow_workers > 0) {
    how.stragglers = hurried({}, 20);
    how.stragglers->reporting_min = 3;
  }
  coordinator_effects effects;
  ++term_;
  leases_now_.clear();
  calls_.clear();
  const auto last = checkpoints_.empty() ? 0 : checkpoints_.rbegin()->first;
  coordinator_ = std::make_unique<coordinator>(job_, how, persisted_, last, now_, effects);
  carry_out(effects);
  require(persisted_.term == term_, "the term was not persisted");
}

inline void world::carry_out(coordinator_effects& effects) {
  for (auto& effect : effects) {
    if (auto* x = std::get_if<send_effect>(&effect)) {
      watch(x->orders);
      post(x->orders);
    } else if (auto* find = std::get_if<find_checkpoint_effect>(&effect)) {
      calls_.push_back(
        {now_ + milliseconds{pick(5, 60)}, term_, true, find->unreadable, 0, !chance(0.1)});
    } else if (auto* commit = std::get_if<commit_checkpoint_effect>(&effect)) {
      require(commit->manifest.parts.size() == job_.chain_count(), "a checkpoint lacks a part");
      calls_.push_back({now_ + milliseconds{pick(5, 60)},
                        term_,
                        false,
                        {},
                        commit->manifest.checkpoint,
                        now_ >= options_.kills_until || !chance(0.05)});
      checkpoints_[commit->manifest.checkpoint].clock = commit->manifest.clock;
    } else if (auto* state = std::get_if<persist_effect>(&effect)) {
      persist(state->state);
    } else if (auto* event = std::get_if<event_effect>(&effect)) {
      log_.push_back(std::to_string(now_.count() / 1000000) + " " + event->text);
      const auto says = [&](const char* words) {
        return event->text.find(words) != std::string::npos ? 1u : 0u;
      };
      tally_.rejoined += says("rejoined");
      tally_.backups += says("nobody waits for it");
      tally_.evictions += says("is out for");
    }
  }
}

inline void world::persist(const storage::coordinator_state& state) {
  const auto before = std::exchange(persisted_, state);
  if (before.chains.size() != state.chains.size())
    return;
  std::size_t begun = 0, without_need = 0;
  for (std::size_t i = 0; i < state.chains.size(); ++i) {
    const auto& [active, origin, proposed] = state.chains[i];
    const auto& old = before.chains[i];
    const auto& newest = proposed ? *proposed : active;
    require(newest.epoch >= newest_of(old).epoch && active.epoch >= old.active.epoch,
            "epochs go back");
    if (active.generation == old.active.generation && active.members != old.active.members) {
      const bool first = active.members.front() != old.active.members.front();
      tally_.failovers += first && !serves(old.active.members.front()) ? 1 : 0;
      tally_.moves +=
        old.active.members.size() == options_.replicas && active.members.size() == options_.replicas
          ? 1
          : 0;
    }
    if (old.active.members.empty() || newest.generation == newest_of(old).generation
        || newest_of(old).generation != old.active.generation)
      continue; // It goes on, or was beginning already.
    ++begun;
    without_need += std::ranges::any_of(old.active.members, [&](auto& x) { return serves(x); });
  }
  const bool together = options_.sync.mode == consistency_mode::bsp;
  require(without_need == 0 || (together && (before.rolling_back || without_need < begun)),
          "a chain goes back though one of its servers lives");
}

/// Whether this incarnation lives.
inline bool world::serves(const member_id& who) const {
  const auto found = servers_.find(who.index);
  return found != servers_.end() && found->second.id == who;
}

/// Two live workers never hold the same open batch within a term; a lease id means one lease.
inline void world::watch(const orders& what) {
  if (const auto* to_server = std::get_if<server_orders>(&what.body))
    return watch(*to_server);
  const auto* mine = std::get_if<worker_orders>(&what.body);
  if (mine == nullptr || what.to.role != role::worker)
    return;
  for (const auto& one : mine->leases) {
    const auto [known, is_new] = leases_seen_.try_emplace(one.id, one, what.to);
    const auto& [whole, holder] = known->second;
    const auto skipped = one.first.value - whole.first.value;
    const bool is_part = one.first >= whole.first && one.stride == whole.stride
                         && skipped % whole.stride == 0
                         && skipped / whole.stride + one.count <= whole.count;
    require(holder == what.to && (may_share() ? is_part : one == whole),
            "lease id " + std::to_string(one.id) + " was used twice");
  }
  leases_now_[what.to] = what.stop ? std::vector<lease>{} : mine->leases;
  std::map<std::uint64_t, member_id> holder;
  for (const auto& [who, leases] : leases_now_) {
    const auto worker = workers_.find(who.index);
    if (worker == workers_.end() || worker->second.id != who || worker->second.stalled_once)
      continue;
    for (const auto& one : leases) {
      const auto progress = worker->second.leases.find(one.id);
      for (std::uint32_t i = 0; i < one.count; ++i) {
        const auto batch = one.at(i);
        if (progress != worker->second.leases.end()
            && progress->second.second.contains(batch.value))
          continue;
        const bool alone = holder.try_emplace(batch.value, who).second;
        tally_.shared += alone ? 0 : 1;
        require(alone || may_share(),
                "batch " + std::to_string(batch.value) + " is open in two leases");
      }
    }
  }
}

/// For those nobody waits for, the bound of ssp does not hold.
inline void world::watch(const server_orders& what) {
  for (const auto& one : what.workers) {
    auto* worker = find_worker({role::worker, one.worker.value, one.incarnation});
    if (worker != nullptr && one.clock == unbound_clock)
      worker->unbound_once = true;
  }
}

inline void world::mourn(const member_id& who) {
  if (coordinator_ && chance(0.5)) {
    coordinator_effects effects;
    coordinator_->disconnected(who, now_, effects);
    carry_out(effects);
  }
  if (chance(0.8)) // Else nobody sees it die: a process of another host.
    deaths_.push_back({who});
}

// -- the launcher, and misfortune ---------------------------------------------------------------

inline void world::act_observer() {
  if (observer_report_at_ > now_)
    return;
  observer_report_at_ = now_ + 100ms;
  observer_report body;
  body.deaths = deaths_;
  body.done = phase_seen_ == job_phase::finished;
  post(report{observer_, fingerprint_, ++observer_sequence_, 0, body});
}

inline void world::kill_worker(std::uint32_t index) {
  const auto who = workers_.at(index).id;
  workers_.erase(index);
  respawns_[who] = now_ + milliseconds{pick(10, 400)};
  mourn(who);
}

inline void world::kill_server(std::uint32_t index) {
  const auto who = servers_.at(index).id;
  servers_.erase(index);
  const bool long_absence = chance(options_.long_absence);
  respawns_[who] = now_ + milliseconds{long_absence ? pick(1500, 4000) : pick(10, 400)};
  mourn(who);
}

inline void world::misfortune() {
  if (!chance(options_.kill_rate * 0.005))
    return;
  const auto victim = pick(0, 9);
  if (victim < 4) {
    const auto index = static_cast<std::uint32_t>(pick(0, static_cast<int>(job_.workers) - 1));
    if (workers_.contains(index)) {
      ++tally_.worker_kills;
      kill_worker(index);
    }
  } else if (victim < 7) {
    const auto index =
      static_cast<std::uint32_t>(pick(0, static_cast<int>(job_.servers + options_.added) - 1));
    if (servers_.contains(index)) {
      ++tally_.server_kills;
      kill_server(index);
    }
  } else if (victim < 9) {
    if (coordinator_) {
      ++tally_.coordinator_kills;
      coordinator_.reset();
      coordinator_back_at_ = now_ + milliseconds{pick(10, 400)};
    }
  } else if (!workers_.empty()) {
    auto& worker = workers_.begin()->second;
    worker.stalled_until = now_ + milliseconds{pick(100, 2500)};
    worker.stalled_once = true;
    ++tally_.stalls;
  }
}

inline void world::everything_dies() {
  resumed_ = true;
  ++tally_.resumes;
  coordinator_.reset();
  coordinator_back_at_ = now_ + 100ms;
  resume_next_ = true;
  servers_.clear();
  workers_.clear();
  respawns_.clear();
  mail_.clear();
  deaths_.clear();
  for (std::uint32_t i = 0; i < job_.servers + options_.added; ++i)
    start_server(i);
  for (std::uint32_t i = 0; i < job_.workers + job_.backup_workers; ++i)
    start_worker(i);
}

inline std::uint64_t world::clocks_of(const batch_set& marks) const {
  return marks.floor().value >= job_.batches() ? bsp_clock_count(job_)
                                               : bsp_clock(job_, marks.floor());
}

inline void world::check_finished() {
  std::uint64_t sum = 0;
  for (std::uint64_t batch = 0; batch < job_.batches(); ++batch)
    sum += content::fingerprint_of({batch});
  const auto full = [&](const content& x) {
    return x.marks == batch_set(batch_id{job_.batches()}) && x.sum == sum;
  };
  for (std::uint32_t i = 0; i < persisted_.chains.size(); ++i) {
    const auto head = persisted_.chains[i].active.members.front();
    if (serves(head)) // Else it died after the end, and others take its place.
      require(full(servers_.at(head.index).replicas.at({i}).values),
              "finished without all batches in chain " + std::to_string(i));
  }
  const auto newest = std::find_if(checkpoints_.rbegin(), checkpoints_.rend(),
                                   [](const auto& x) { return x.second.committed; });
  require(newest != checkpoints_.rend(), "finished without a checkpoint");
  for (const auto& [index, part] : newest->second.parts)
    require(full(part.values), "the last checkpoint lacks batches");
}

/// What two replicas of a chain have at the same version is the same.
inline void world::check_replicas() const {
  std::map<std::tuple<chain_id, generation_id, std::uint64_t>, std::uint64_t> sums;
  for (const auto& [index, server] : servers_)
    for (const auto& [chain, at] : server.replicas) {
      if (!at.decider || at.decider->state() == nullptr)
        continue;
      require(at.decider->state()->marks() == at.values.marks, "marks and values differ");
      const auto version = at.decider->state()->version();
      const auto known = sums.try_emplace({chain, at.generation, version}, at.values.sum);
      require(known.first->second == at.values.sum,
              "replicas of chain " + std::to_string(chain.value) + " differ");
    }
}

inline world::world(world_options options, std::uint64_t seed) : options_(options), random_(seed) {
  job_.name = "model";
  job_.partitions = 8;
  job_.servers = options.servers;
  job_.replicas = options.replicas;
  job_.workers = options.workers;
  job_.backup_workers = options.backup_workers;
  job_.batch_samples = 1;
  job_.samples = options.batches_per_pass;
  job_.passes = options.passes;
  table_spec table;
  table.name = "w";
  table.shape = {64};
  table.sync = options.sync;
  job_.tables = {table};
  fingerprint_ = fingerprint(job_);
  observer_ = {role::observer, 0, next_incarnation()};
  for (std::uint32_t i = 0; i < job_.servers; ++i)
    start_server(i);
  for (std::uint32_t i = 0; i < job_.workers + job_.backup_workers; ++i)
    start_worker(i);
  start_coordinator(false);
}

inline std::string world::describe() const {
  const auto text = [](auto x) { return std::to_string(x); };
  std::string all =
    "\nphase "
    + text(static_cast<int>(coordinator_ ? coordinator_->phase() : job_phase::gathering));
  for (const auto& [index, x] : servers_) {
    for (const auto& [chain, at] : x.replicas) {
      const auto status = at.status();
      all += "\nserver " + text(index) + "." + text(x.id.incarnation.value) + " chain "
             + text(chain.value) + " generation " + text(status.generation.value) + " epoch "
             + text(status.epoch.value) + " sealed " + text(status.sealed.value)
             + (status.complete ? " complete" : "") + (status.joint ? " joint" : "") + " marks "
             + text(at.values.marks.floor().value) + " of " + text(at.values.marks.size())
             + " job generation " + text(at.job_generation.value);
      if (at.decider && at.decider->state() != nullptr && at.decider->is_head())
        for (const auto& entry : at.decider->state()->clocks())
          all += " [" + text(entry.worker.value) + "." + text(entry.incarnation.value) + " at "
                 + text(entry.clock) + (entry.known ? "]" : " unheard]");
    }
  }
  for (std::size_t i = 0; i < persisted_.chains.size(); ++i) {
    const auto& record = persisted_.chains[i];
    const auto list = [&](const chain_config& config) {
      std::string members =
        " epoch " + text(config.epoch.value) + " generation " + text(config.generation.value) + ":";
      for (const auto& who : config.members)
        members += " " + text(who.index) + "." + text(who.incarnation.value);
      if (config.joiner)
        members += " +" + text(config.joiner->index) + "." + text(config.joiner->incarnation.value);
      return members;
    };
    all += "\nchain " + text(i) + list(record.active)
           + (record.proposed ? ", then" + list(*record.proposed) : "");
  }
  for (const auto& [index, x] : workers_) {
    const auto next = x.next_open();
    all += "\nworker " + text(index) + "." + text(x.id.incarnation.value) + " clock "
           + text(x.clock) + (x.admitted ? " admitted" : "") + " leases " + text(x.leases.size())
           + " flights " + text(x.flights.size()) + " next "
           + (next ? text(next->value) : std::string{"none"});
  }
  return all;
}

// -- time ---------------------------------------------------------------------------------------

inline void world::answer_storage() {
  const auto calls = std::exchange(calls_, {});
  for (const auto& call : calls) {
    if (call.at > now_) {
      calls_.push_back(call);
      continue;
    }
    if (call.term != term_ || !coordinator_)
      continue;
    coordinator_effects effects;
    if (call.find)
      answer_search(call, effects);
    else
      answer_commit(call, effects);
    carry_out(effects);
  }
}

inline void world::answer_search(const storage_answer& call, coordinator_effects& effects) {
  storage::found what;
  // Never all of them: that fails the job.
  bool damaged =
    !call.good && std::count_if(checkpoints_.begin(), checkpoints_.end(), [&](const auto& x) {
                    return x.second.committed && !rotten_.contains(x.first);
                  }) > 1;
  for (auto at = checkpoints_.rbegin(); at != checkpoints_.rend() && !what.newest; ++at) {
    if (!at->second.committed)
      continue;
    const auto& skipped = call.unreadable;
    if (std::find(skipped.begin(), skipped.end(), at->first) != skipped.end()
        || std::exchange(damaged, false)) {
      what.refused.push_back({errc::damaged, "checkpoint " + std::to_string(at->first)});
      continue;
    }
    what.newest.emplace();
    what.newest->checkpoint = at->first;
  }
  coordinator_->checkpoint_found(what, now_, effects);
}

inline void world::answer_commit(const storage_answer& call, coordinator_effects& effects) {
  auto& stored = checkpoints_[call.number];
  if (options_.sync.mode == consistency_mode::bsp) {
    for (const auto& [chain, part] : stored.parts)
      require(clocks_of(part.values.marks) == stored.clock,
              "the parts of a bsp checkpoint were cut at different clocks");
  }
  stored.committed = call.good;
  tally_.commits += call.good ? 1 : 0;
  coordinator_->checkpoint_committed(
    call.number, call.good ? result<void>{} : result<void>{errc::io_failed, "disk full"}, now_,
    effects);
}

inline void world::respawn() {
  for (auto at = respawns_.begin(); at != respawns_.end();) {
    if (at->second > now_) {
      ++at;
      continue;
    }
    if (at->first.role == role::server && !servers_.contains(at->first.index))
      start_server(at->first.index);
    else if (at->first.role == role::worker && !workers_.contains(at->first.index))
      start_worker(at->first.index);
    at = respawns_.erase(at);
  }
  if (!coordinator_ && coordinator_back_at_ && *coordinator_back_at_ <= now_) {
    coordinator_back_at_.reset();
    start_coordinator(std::exchange(resume_next_, false));
  }
}

inline milliseconds world::run(milliseconds limit) {
  job_phase before = job_phase::gathering;
  for (;; now_ += 5ms) {
    require(now_ < limit, "the job did not end in time");
    deliver();
    answer_storage();
    for (auto& [index, server] : servers_)
      act(server);
    for (auto& [index, worker] : workers_)
      act(worker);
    act_observer();
    if (coordinator_ && coordinator_->phase() == job_phase::stopped)
      options_.kills_until = 0ms; // A coordinator that dies now would wait for those who left.
    if (now_ < options_.kills_until)
      misfortune();
    else if (options_.resume_after && !resumed_ && phase_seen_ < job_phase::finished)
      everything_dies();
    if (now_ == time_point{1s})
      for (std::uint32_t i = 0; i < options_.added; ++i)
        start_server(job_.servers + i);
    respawn();
    if (now_.count() / 1000000 % 100 == 0)
      check_replicas();
    if (!coordinator_)
      continue;
    if (now_.count() / 1000000 % 20 == 0) {
      coordinator_effects effects;
      coordinator_->tick(now_, effects);
      carry_out(effects);
    }
    if (coordinator_->phase() == job_phase::finished && before != job_phase::finished)
      check_finished();
    before = coordinator_->phase();
    if (before == job_phase::stopped && servers_.empty() && workers_.empty())
      break;
    if (before == job_phase::stopped)
      respawns_.clear();
  }
  return std::chrono::duration_cast<milliseconds>(now_);
}

inline void tally::add(const tally& other) {
  for (const auto member :
       {&tally::worker_kills, &tally::server_kills, &tally::coordinator_kills, &tally::stalls,
        &tally::restores, &tally::rotten, &tally::rollbacks_to_zero, &tally::commits,
        &tally::repeats, &tally::resumes, &tally::rejoined, &tally::failovers, &tally::moves,
        &tally::copies, &tally::backups, &tally::evictions, &tally::shared})
    this->*member += other.*member;
}

} // namespace troupe::model
