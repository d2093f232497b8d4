// Random clusters under random misfortune: the job ends in bounded time, every batch is once in every
// server's values, no two workers hold the same open batch, no lease id is used twice.
#include "tests/actors/cluster_model.hpp"

#include "doctest/doctest.h"

#include <iostream>

namespace troupe::model {

using namespace std::chrono_literals;

// -- messages -------------------------------------------------------------------------------------

report model_server::describe(std::uint64_t job) {
  server_report body;
  body.address = "s" + std::to_string(id.index);
  body.part = part;
  body.checkpoint_failed = checkpoint_failed;
  body.checkpoint_failure = "by chance";
  if (values) {
    body.assignment = assignment;
    body.generation = generation;
    body.marks = values->marks;
    body.clocks = clocks.entries();
    body.pull_clock_max = pull_clock_max;
  }
  return {id, job, ++sequence, 0, body};
}

report model_worker::describe(std::uint64_t job) {
  worker_report body;
  body.generation = generation;
  body.clock = clock;
  for (const auto& [number, entry] : leases) {
    lease_progress mine{entry.first, {}};
    for (const auto batch : entry.second)
      mine.done.push_back({batch});
    body.leases.push_back(std::move(mine));
  }
  return {id, job, ++sequence, 0, body};
}

bool model_worker::has_open(batch_id batch) const {
  for (const auto& [number, entry] : leases) {
    for (std::uint32_t i = 0; i < entry.first.count; ++i) {
      if (entry.first.at(i) == batch && !entry.second.contains(batch.value))
        return true;
    }
  }
  return false;
}

std::optional<batch_id> model_worker::next_open() const {
  std::optional<batch_id> smallest;
  for (const auto& [number, entry] : leases) {
    for (std::uint32_t i = 0; i < entry.first.count; ++i) {
      const auto batch = entry.first.at(i);
      if (!entry.second.contains(batch.value) && !flights.contains(batch.value)
          && (!smallest || batch < *smallest))
        smallest = batch;
    }
  }
  return smallest;
}

void world::post(std::variant<report, orders> what) {
  const int copies = chance(options_.repetition) ? 2 : chance(options_.loss) ? 0 : 1;
  for (int i = 0; i < copies; ++i)
    mail_.push_back({now_ + milliseconds{pick(0, options_.delay_ms_max)}, ++letters_, what});
}

void world::deliver() {
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

// -- the coordinator and its storage ----------------------------------------------------------------

void world::start_coordinator(bool resume) {
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

void world::carry_out(coordinator_effects& effects) {
  for (auto& effect : effects) {
    if (auto* x = std::get_if<send_effect>(&effect)) {
      watch(x->orders);
      post(x->orders);
    } else if (std::get_if<find_checkpoint_effect>(&effect)) {
      calls_.push_back({now_ + milliseconds{pick(5, 60)}, term_, true, 0, !chance(0.1)});
    } else if (auto* commit = std::get_if<commit_checkpoint_effect>(&effect)) {
      require(commit->manifest.parts.size() == job_.servers, "a checkpoint lacks a part");
      calls_.push_back({now_ + milliseconds{pick(5, 60)}, term_, false, commit->manifest.checkpoint,
                        !chance(0.05)});
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
void world::watch(const orders& what) {
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

void world::mourn(const member_id& who) {
  if (coordinator_ && chance(0.5)) {
    coordinator_effects effects;
    coordinator_->disconnected(who, now_, effects);
    carry_out(effects);
  }
  if (chance(0.8)) // Else nobody sees it die: a process of another host.
    deaths_.push_back({who});
}

// -- servers ----------------------------------------------------------------------------------------

void world::start_server(std::uint32_t index) {
  servers_[index] = {};
  servers_[index].id = {role::server, index, next_incarnation()};
}

void world::start_worker(std::uint32_t index) {
  workers_[index] = {};
  workers_[index].id = {role::worker, index, next_incarnation()};
  workers_[index].step_ms = pick(2, 25);
}

std::uint64_t world::clocks_of(const batch_set& marks) const {
  return marks.floor().value >= job_.batches() ? bsp_clocks_total(job_)
                                               : bsp_clock(job_, marks.floor());
}

void world::obey(model_server& server, const orders& what) {
  const auto& mine = std::get<server_orders>(what.body);
  if (std::pair{what.term, what.sequence} <= server.last_orders)
    return;
  server.last_orders = {what.term, what.sequence};
  if (what.stop) {
    const auto index = server.id.index;
    if (!told_to_stop_ && phase_seen_ != job_phase::finished)
      respawns_[server.id] = now_ + 50ms;
    servers_.erase(index);
    return;
  }
  if (mine.assignment != 0 && mine.assignment != server.wanted) {
    server.wanted = mine.assignment;
    server.assignment = 0;
    server.values.reset();
    server.part = {};
    server.cutting = 0;
    server.writing.reset();
    server.loading = {now_ + milliseconds{pick(5, 80)}, mine};
  }
  if (!server.values)
    return;
  if (mine.workers != server.workers) {
    server.workers = mine.workers;
    const auto s = options_.sync.staleness_clocks;
    server.clocks.list(server.workers,
                       server.pull_clock_max > s ? server.pull_clock_max - s : 0);
    server.report_at = now_;
  }
  if (mine.checkpoint > server.asked) {
    server.asked = mine.checkpoint;
    if (chance(0.05)) {
      server.checkpoint_failed = mine.checkpoint;
    } else if (options_.sync.mode != consistency_mode::bsp) {
      cut(server, mine.checkpoint);
    } else if (clocks_of(server.values->marks) > mine.checkpoint_clock) {
      server.checkpoint_failed = mine.checkpoint;
    } else {
      server.cutting = mine.checkpoint;
      server.cut_clock = mine.checkpoint_clock;
    }
  }
}

void world::cut(model_server& server, std::uint64_t number) {
  server.writing = {now_ + milliseconds{pick(5, 80)}, *server.values};
  server.writing_number = number;
  server.cutting = 0;
}

void world::apply_slots(model_server& server) {
  for (;;) {
    if (server.cutting != 0 && clocks_of(server.values->marks) == server.cut_clock)
      cut(server, server.cutting);
    const auto clock = clocks_of(server.values->marks);
    if (clock >= bsp_clocks_total(job_))
      return;
    for (auto slot = bsp_first(job_, clock); slot < bsp_end(job_, clock); ++slot.value) {
      if (!server.slots.contains(slot.value))
        return;
    }
    for (auto slot = bsp_first(job_, clock); slot < bsp_end(job_, clock); ++slot.value) {
      server.slots.erase(slot.value);
      server.values->apply(slot);
    }
  }
}

void world::act(model_server& server) {
  if (server.loading && server.loading->first <= now_) {
    const auto from = server.loading->second;
    server.loading.reset();
    content loaded;
    if (from.restore != 0) {
      const auto& stored = checkpoints_.at(from.restore);
      require(stored.committed, "restored from a checkpoint without commit");
      loaded = stored.parts.at(server.id.index);
      ++tally_.restores;
    } else if (persisted_.term > 1 || from.generation.value > 0) {
      ++tally_.rollbacks_to_zero;
    }
    if (options_.sync.mode == consistency_mode::bsp) {
      auto& others = generations_[from.generation];
      for (const auto& [index, marks] : others)
        require(index == server.id.index || marks == loaded.marks,
                "servers of one generation began at different clocks");
      others[server.id.index] = loaded.marks;
    }
    server.values = loaded;
    server.assignment = from.assignment;
    server.generation = from.generation;
    server.workers = from.workers;
    server.slots.clear();
    server.clocks = {};
    server.pull_clock_max = 0;
    server.clocks.list(server.workers, 0);
    server.report_at = now_;
  }
  if (server.writing && server.writing->first <= now_) {
    checkpoints_[server.writing_number].parts[server.id.index] = server.writing->second;
    server.part = {server.writing_number, {server.id.index}, {}, 0};
    server.writing.reset();
    server.report_at = now_;
  }
  if (server.values && options_.sync.mode == consistency_mode::bsp)
    apply_slots(server);
  if (server.report_at <= now_) {
    post(server.describe(fingerprint_));
    server.report_at = now_ + 100ms;
  }
}

bool world::push(model_server& server, const model_worker& worker, batch_id batch,
                 std::uint64_t clock) {
  if (server.generation != worker.generation
      || server.clocks.objection({worker.id.index}, worker.id.incarnation))
    return false;
  if (server.values->marks.contains(batch)) {
    ++tally_.repeats;
  } else if (options_.sync.mode == consistency_mode::bsp) {
    server.slots.insert(batch.value);
    apply_slots(server);
  } else {
    server.values->apply(batch);
  }
  server.clocks.advance({worker.id.index}, clock + 1);
  return server.values->marks.contains(batch) && !chance(options_.loss);
}

bool world::pull(model_server& server, const model_worker& worker, batch_id batch) {
  if (server.generation != worker.generation
      || server.clocks.objection({worker.id.index}, worker.id.incarnation))
    return false;
  server.clocks.advance({worker.id.index}, worker.clock);
  if (options_.sync.mode == consistency_mode::bsp)
    return clocks_of(server.values->marks) >= bsp_clock(job_, batch);
  if (options_.sync.mode == consistency_mode::asp)
    return true;
  const auto s = options_.sync.staleness_clocks;
  if (server.clocks.laggard(worker.clock > s ? worker.clock - s : 0))
    return false;
  check_staleness(worker);
  server.pull_clock_max = std::max(server.pull_clock_max, worker.clock);
  return true;
}

/// ssp: nobody who has work is more than the bound behind a reader.
void world::check_staleness(const model_worker& reader) const {
  for (const auto& [index, other] : workers_) {
    if (!other.admitted || other.stalled_once || !other.next_open())
      continue;
    require(other.clock + options_.sync.staleness_clocks >= reader.clock,
            "worker " + std::to_string(index) + " at clock " + std::to_string(other.clock)
              + " is too far behind a reader at " + std::to_string(reader.clock));
  }
}

// -- workers ----------------------------------------------------------------------------------------

void world::obey(model_worker& worker, const orders& what) {
  const auto& mine = std::get<worker_orders>(what.body);
  if (std::pair{what.term, what.sequence} <= worker.last_orders)
    return;
  worker.last_orders = {what.term, what.sequence};
  if (what.stop) {
    if (!told_to_stop_ && phase_seen_ != job_phase::finished)
      respawns_[worker.id] = now_ + 50ms;
    workers_.erase(worker.id.index);
    return;
  }
  if (mine.view.epoch > worker.seen.epoch)
    worker.seen = mine.view;
  if (mine.view.generation > worker.generation) {
    worker.generation = mine.view.generation;
    worker.leases.clear();
    worker.flights.clear();
    worker.computing.reset();
    worker.clock = 0;
  }
  if (mine.admitted && !worker.admitted)
    worker.clock = std::max(worker.clock, mine.start_clock);
  worker.admitted = mine.admitted;
  std::map<std::uint64_t, std::pair<lease, std::set<std::uint64_t>>> held;
  for (const auto& one : mine.leases)
    held[one.id] = {one, worker.leases.contains(one.id) ? worker.leases[one.id].second
                                                        : std::set<std::uint64_t>{}};
  worker.leases = std::move(held);
  std::erase_if(worker.flights, [&](const auto& x) { return !worker.has_open({x.first}); });
}

model_server* world::reach(const model_worker& worker, std::uint32_t index) {
  for (const auto& entry : worker.seen.servers) {
    const auto at = servers_.find(index);
    if (entry.server.value == index && entry.serving && at != servers_.end()
        && at->second.id.incarnation == entry.incarnation && at->second.values)
      return &at->second;
  }
  return nullptr;
}

void world::act(model_worker& worker) {
  if (now_ < worker.stalled_until)
    return;
  for (auto flight = worker.flights.begin(); flight != worker.flights.end();) {
    auto& [batch, state] = *flight;
    for (std::uint32_t index = 0; index < job_.servers && state.retry <= now_; ++index) {
      auto* server = reach(worker, index);
      if (!state.acknowledged.contains(index) && server != nullptr
          && push(*server, worker, {batch}, state.clock))
        state.acknowledged.insert(index);
    }
    if (state.retry <= now_)
      state.retry = now_ + 15ms;
    if (state.acknowledged.size() < job_.servers) {
      ++flight;
      continue;
    }
    for (auto& [number, entry] : worker.leases) {
      for (std::uint32_t i = 0; i < entry.first.count; ++i) {
        if (entry.first.at(i).value == batch)
          entry.second.insert(batch);
      }
      if (entry.second.size() == entry.first.count)
        worker.report_at = now_;
    }
    flight = worker.flights.erase(flight);
  }
  if (worker.computing && worker.computing->second <= now_) {
    const auto batch = worker.computing->first;
    worker.computing.reset();
    if (worker.has_open(batch))
      worker.flights[batch.value] = {worker.clock, {}, now_};
    ++worker.clock;
  }
  const auto limit = options_.sync.mode == consistency_mode::bsp ? job_.workers : 2;
  const auto next = worker.next_open();
  if (!worker.computing && worker.admitted && next && worker.flights.size() < limit) {
    bool all = true;
    for (std::uint32_t index = 0; index < job_.servers; ++index) {
      auto* server = reach(worker, index);
      const bool answered = server != nullptr && pull(*server, worker, *next);
      all = all && answered; // Every server is asked, whatever the others say.
    }
    if (all)
      worker.computing = {*next, now_ + milliseconds{worker.step_ms}};
  }
  if (worker.report_at <= now_) {
    post(worker.describe(fingerprint_));
    worker.report_at = now_ + 100ms;
  }
}

// -- the launcher, and misfortune -------------------------------------------------------------------

void world::act_observer() {
  if (observer_report_at_ > now_)
    return;
  observer_report_at_ = now_ + 100ms;
  observer_report body;
  body.deaths = deaths_;
  body.done = phase_seen_ == job_phase::finished;
  post(report{observer_, fingerprint_, ++observer_sequence_, 0, body});
}

void world::kill_worker(std::uint32_t index) {
  const auto who = workers_.at(index).id;
  workers_.erase(index);
  respawns_[who] = now_ + milliseconds{pick(10, 400)};
  mourn(who);
}

void world::kill_server(std::uint32_t index) {
  const auto who = servers_.at(index).id;
  servers_.erase(index);
  respawns_[who] = now_ + milliseconds{pick(10, 400)};
  mourn(who);
}

void world::misfortune() {
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

void world::everything_dies() {
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

void world::check_finished() {
  std::uint64_t sum = 0;
  for (std::uint64_t batch = 0; batch < job_.batches(); ++batch)
    sum += content::fingerprint_of({batch});
  const auto full = [&](const content& x) {
    return x.marks == batch_set(batch_id{job_.batches()}) && x.sum == sum;
  };
  for (const auto& [index, server] : servers_) {
    if (server.values) // Else it died after the end, and is being restored.
      require(full(*server.values), "finished without all batches on server " + std::to_string(index));
  }
  const auto newest = std::find_if(checkpoints_.rbegin(), checkpoints_.rend(),
                                   [](const auto& x) { return x.second.committed; });
  require(newest != checkpoints_.rend(), "finished without a checkpoint");
  for (const auto& [index, part] : newest->second.parts)
    require(full(part), "the last checkpoint lacks batches");
}

world::world(world_options options, std::uint64_t seed) : options_(options), random_(seed) {
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

std::string world::describe() const {
  const auto text = [](auto x) { return std::to_string(x); };
  std::string all = "\nphase " + text(static_cast<int>(coordinator_ ? coordinator_->phase()
                                                                    : job_phase::gathering));
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

milliseconds world::run(milliseconds limit) {
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
        bool damaged = !call.good;
        for (auto at = checkpoints_.rbegin(); at != checkpoints_.rend() && !what.newest; ++at) {
          if (!at->second.committed)
            continue;
          if (std::exchange(damaged, false)) {
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
          call.number, call.good ? result<void>{} : result<void>{errc::io_failed, "disk full"}, now_,
          effects);
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

// -- the tests --------------------------------------------------------------------------------------

namespace {

world_options random_options(consistency_mode mode, std::mt19937_64& random) {
  const auto pick = [&](int low, int high) {
    return static_cast<std::uint32_t>(std::uniform_int_distribution<>(low, high)(random));
  };
  world_options how;
  how.sync = {mode, mode == consistency_mode::ssp ? pick(0, 3) : 0};
  how.servers = pick(1, 3);
  how.workers = pick(1, 4);
  how.batches_per_pass = pick(20, 250);
  how.passes = pick(1, 3);
  how.lease_batches = pick(1, 20);
  how.checkpoint_clocks = pick(0, 2) == 0 ? pick(1, 20) : 0;
  how.loss = pick(0, 2) * 0.05;
  how.repetition = pick(0, 2) * 0.05;
  how.kill_rate = pick(0, 4);
  how.resume_after = pick(0, 4) == 0;
  return how;
}

tally run_seeds(consistency_mode mode, std::uint64_t seeds) {
  tally all;
  milliseconds longest{0};
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    std::mt19937_64 random(seed * 7919 + static_cast<std::uint64_t>(mode));
    world one(random_options(mode, random), random());
    try {
      longest = std::max(longest, one.run(60s));
    } catch (const violation& what) {
      std::string story;
      for (const auto& line : one.log())
        story += "\n  " + line;
      story += one.describe();
      FAIL("seed ", seed, ": ", std::string{what.what()}, story);
    }
    all.worker_kills += one.counted().worker_kills;
    all.server_kills += one.counted().server_kills;
    all.coordinator_kills += one.counted().coordinator_kills;
    all.stalls += one.counted().stalls;
    all.restores += one.counted().restores;
    all.rollbacks_to_zero += one.counted().rollbacks_to_zero;
    all.commits += one.counted().commits;
    all.repeats += one.counted().repeats;
    all.resumes += one.counted().resumes;
    all.rejoined += one.counted().rejoined;
  }
  MESSAGE("seeds ", seeds, ", longest ", longest.count(), " ms; kills: ", all.worker_kills,
          " workers, ", all.server_kills, " servers, ", all.coordinator_kills, " coordinators; ",
          all.stalls, " stalls, ", all.restores, " restores, ", all.rollbacks_to_zero,
          " starts over, ", all.commits, " commits, ", all.repeats, " repeats, ", all.resumes,
          " resumes, ", all.rejoined, " rejoined");
  return all;
}

/// The misfortunes must have happened, else nothing was tested.
void check_counts(const tally& all, std::uint64_t seeds) {
  CHECK(all.worker_kills > seeds);
  CHECK(all.server_kills > seeds / 2);
  CHECK(all.coordinator_kills > seeds / 2);
  CHECK(all.stalls > seeds / 4);
  CHECK(all.restores > seeds / 4);
  CHECK(all.rollbacks_to_zero > seeds / 20);
  CHECK(all.commits > seeds);
  CHECK(all.resumes > seeds / 20);
}

constexpr std::uint64_t seeds = 700;

} // namespace

TEST_CASE("an asp job ends with every batch applied once, whatever dies") {
  check_counts(run_seeds(consistency_mode::asp, seeds), seeds);
}

TEST_CASE("an ssp job ends with every batch applied once, whatever dies") {
  check_counts(run_seeds(consistency_mode::ssp, seeds), seeds);
}

TEST_CASE("a bsp job ends with every batch applied once, whatever dies") {
  check_counts(run_seeds(consistency_mode::bsp, seeds), seeds);
}

} // namespace troupe::model
