// The model's world: mail, storage, the launcher, misfortune and time.
#pragma once

#include "tests/actors/cluster_model.hpp"

namespace troupe::model {

using namespace std::chrono_literals;

// -- mail ---------------------------------------------------------------------------------------

inline void world::post(std::variant<report, orders> what) {
  const int copies = chance(options_.repetition) ? 2 : chance(options_.loss) ? 0 : 1;
  for (int i = 0; i < copies; ++i)
    mail_.push_back({now_ + milliseconds{pick(0, options_.delay_ms_max)}, ++letters_, what});
}

inline void world::deliver() {
  std::vector<letter> due;
  const auto is_due = [&](const letter& x) { return x.at <= now_; };
  std::copy_if(mail_.begin(), mail_.end(), std::back_inserter(due), is_due);
  std::erase_if(mail_, is_due);
  std::sort(due.begin(), due.end(), [](const letter& a, const letter& b) {
    return std::pair(a.at, a.order) < std::pair(b.at, b.order);
  });
  for (const auto& one : due) {
    if (const auto* up = std::get_if<report>(&one.what)) {
      if (!coordinator_)
        continue;
      coordinator_effects effects;
      coordinator_->receive(*up, now_, effects);
      carry_out(effects);
      continue;
    }
    const auto& down = std::get<orders>(one.what);
    if (down.to.role == role::server && servers_.contains(down.to.index)) {
      if (servers_[down.to.index].id == down.to)
        obey(servers_[down.to.index], down);
    } else if (down.to.role == role::worker && workers_.contains(down.to.index)) {
      if (workers_[down.to.index].id == down.to)
        obey(workers_[down.to.index], down);
    } else if (down.to == observer_) {
      phase_seen_ = std::get<observer_orders>(down.body).phase;
      told_to_stop_ = told_to_stop_ || down.stop;
      require(down.failed.empty(), "the job failed: " + down.failed);
    }
  }
}

// -- the coordinator and its storage ------------------------------------------------------------

inline void world::start_coordinator(bool resume) {
  coordinator_options how;
  how.ledger.lease_batches = options_.lease_batches;
  how.liveness_timeout = 1500ms;
  how.gather_timeout = 1000ms;
  how.recovery_timeout = 800ms;
  how.audit_grace = 400ms;
  how.checkpoint_interval = 400ms;
  how.checkpoint_clocks = options_.checkpoint_clocks;
  how.resume = resume;
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
      require(commit->manifest.parts.size() == job_.servers, "a checkpoint lacks a part");
      calls_.push_back({now_ + milliseconds{pick(5, 60)},
                        term_,
                        false,
                        {},
                        commit->manifest.checkpoint,
                        now_ >= options_.kills_until || !chance(0.05)});
      checkpoints_[commit->manifest.checkpoint].clock = commit->manifest.clock;
    } else if (auto* state = std::get_if<persist_effect>(&effect)) {
      persisted_ = state->state;
    } else if (auto* event = std::get_if<event_effect>(&effect)) {
      log_.push_back(std::to_string(now_.count() / 1000000) + " " + event->text);
      if (event->text.find("rejoined") != std::string::npos)
        ++tally_.rejoined;
    }
  }
}

/// Two live workers never hold the same open batch within a term; a lease id means one lease.
inline void world::watch(const orders& what) {
  const auto* mine = std::get_if<worker_orders>(&what.body);
  if (mine == nullptr || what.to.role != role::worker)
    return;
  for (const auto& one : mine->leases) {
    const auto [known, is_new] = leases_seen_.try_emplace(one.id, one, what.to);
    require(known->second == std::pair(one, what.to),
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
        require(holder.try_emplace(batch.value, who).second,
                "batch " + std::to_string(batch.value) + " is open in two leases");
      }
    }
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
  respawns_[who] = now_ + milliseconds{pick(10, 400)};
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
    const auto index = static_cast<std::uint32_t>(pick(0, static_cast<int>(job_.servers) - 1));
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
  for (std::uint32_t i = 0; i < job_.servers; ++i)
    start_server(i);
  for (std::uint32_t i = 0; i < job_.workers; ++i)
    start_worker(i);
}

inline void world::check_finished() {
  std::uint64_t sum = 0;
  for (std::uint64_t batch = 0; batch < job_.batches(); ++batch)
    sum += content::fingerprint_of({batch});
  const auto full = [&](const content& x) {
    return x.marks == batch_set(batch_id{job_.batches()}) && x.sum == sum;
  };
  for (const auto& [index, server] : servers_) {
    if (server.values) // Else it died after the end, and is being restored.
      require(full(*server.values),
              "finished without all batches on server " + std::to_string(index));
  }
  const auto newest = std::find_if(checkpoints_.rbegin(), checkpoints_.rend(),
                                   [](const auto& x) { return x.second.committed; });
  require(newest != checkpoints_.rend(), "finished without a checkpoint");
  for (const auto& [index, part] : newest->second.parts)
    require(full(part), "the last checkpoint lacks batches");
}

inline world::world(world_options options, std::uint64_t seed) : options_(options), random_(seed) {
  job_.name = "model";
  job_.partitions = 8;
  job_.servers = options.servers;
  job_.workers = options.workers;
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
  for (std::uint32_t i = 0; i < job_.workers; ++i)
    start_worker(i);
  start_coordinator(false);
}

inline std::string world::describe() const {
  const auto text = [](auto x) { return std::to_string(x); };
  std::string all =
    "\nphase "
    + text(static_cast<int>(coordinator_ ? coordinator_->phase() : job_phase::gathering));
  for (const auto& [index, x] : servers_) {
    all += "\nserver " + text(index) + " assignment " + text(x.assignment) + " generation "
           + text(x.generation.value);
    if (x.values)
      all += " marks " + text(x.values->marks.floor().value) + " + "
             + text(x.values->marks.size() - x.values->marks.floor().value) + " slots "
             + text(x.slots.size());
    for (const auto& entry : x.clocks.entries())
      all += " [" + text(entry.worker.value) + "." + text(entry.incarnation.value) + " at "
             + text(entry.clock) + (entry.known ? "]" : " unheard]");
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

inline milliseconds world::run(milliseconds limit) {
  job_phase before = job_phase::gathering;
  for (;; now_ += 5ms) {
    require(now_ < limit, "the job did not end in time");
    deliver();
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      if (calls_[i].at > now_ || calls_[i].at == time_point{-1})
        continue;
      const auto call = calls_[i];
      calls_[i].at = time_point{-1};
      if (call.term != term_ || !coordinator_)
        continue;
      coordinator_effects effects;
      if (call.find) {
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
      } else {
        auto& stored = checkpoints_[call.number];
        if (options_.sync.mode == consistency_mode::bsp) {
          for (const auto& [index, part] : stored.parts)
            require(clocks_of(part.marks) == stored.clock,
                    "the parts of a bsp checkpoint were cut at different clocks");
        }
        stored.committed = call.good;
        tally_.commits += call.good ? 1 : 0;
        coordinator_->checkpoint_committed(
          call.number, call.good ? result<void>{} : result<void>{errc::io_failed, "disk full"},
          now_, effects);
      }
      carry_out(effects);
    }
    std::erase_if(calls_, [](const auto& x) { return x.at == time_point{-1}; });
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

} // namespace troupe::model
