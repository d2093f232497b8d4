// How the model's servers and workers behave.
#pragma once

#include "tests/actors/cluster_model.hpp"

namespace troupe::model {

using namespace std::chrono_literals;

// -- messages -----------------------------------------------------------------------------------

inline report model_server::describe(std::uint64_t job) {
  server_report body;
  body.address = "s" + std::to_string(id.index);
  body.part = part;
  body.checkpoint_failed = checkpoint_failed;
  body.checkpoint_failure = "by chance";
  body.unreadable = unreadable;
  body.failed = unreadable == 0 ? "" : "a checkpoint is rotten";
  if (values) {
    body.assignment = assignment;
    body.generation = generation;
    body.marks = values->marks;
    body.clocks = clocks.entries();
  }
  return {id, job, ++sequence, 0, body};
}

inline report model_worker::describe(std::uint64_t job) {
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

inline bool model_worker::has_open(batch_id batch) const {
  for (const auto& [number, entry] : leases) {
    for (std::uint32_t i = 0; i < entry.first.count; ++i) {
      if (entry.first.at(i) == batch && !entry.second.contains(batch.value))
        return true;
    }
  }
  return false;
}

inline std::optional<batch_id> model_worker::next_open() const {
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

// -- servers ------------------------------------------------------------------------------------

inline void world::start_server(std::uint32_t index) {
  servers_[index] = {};
  servers_[index].id = {role::server, index, next_incarnation()};
}

inline void world::start_worker(std::uint32_t index) {
  workers_[index] = {};
  workers_[index].id = {role::worker, index, next_incarnation()};
  workers_[index].step_ms = pick(2, 25);
}

inline std::uint64_t world::clocks_of(const batch_set& marks) const {
  return marks.floor().value >= job_.batches() ? bsp_clock_count(job_)
                                               : bsp_clock(job_, marks.floor());
}

inline void world::obey(model_server& server, const orders& what) {
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
    server.unreadable = 0;
    server.cutting = 0;
    server.writing.reset();
    server.loading = {now_ + milliseconds{pick(5, 80)}, mine};
  }
  if (!server.values)
    return;
  if (mine.workers != server.workers) {
    server.workers = mine.workers;
    const auto s = options_.sync.staleness_clocks;
    server.clocks.list(server.workers, server.pull_clock_max > s ? server.pull_clock_max - s : 0);
    server.report_at = now_;
  }
  if (mine.checkpoint > server.asked) {
    server.asked = mine.checkpoint;
    if (now_ < options_.kills_until && chance(0.05)) {
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

inline void world::cut(model_server& server, std::uint64_t number) {
  server.writing = {now_ + milliseconds{pick(5, 80)}, *server.values};
  server.writing_number = number;
  server.cutting = 0;
}

inline void world::apply_slots(model_server& server) {
  for (;;) {
    if (server.cutting != 0 && clocks_of(server.values->marks) == server.cut_clock)
      cut(server, server.cutting);
    const auto clock = clocks_of(server.values->marks);
    if (clock >= bsp_clock_count(job_))
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

/// Never all of them: that fails the job.
inline bool world::is_rotten(std::uint64_t checkpoint) {
  const auto good = std::count_if(checkpoints_.begin(), checkpoints_.end(), [&](const auto& x) {
    return x.second.committed && !rotten_.contains(x.first);
  });
  if (good > 1 && now_ < options_.kills_until && chance(0.05))
    rotten_.insert(checkpoint);
  return rotten_.contains(checkpoint);
}

inline void world::act(model_server& server) {
  if (server.loading && server.loading->first <= now_ && server.loading->second.restore != 0
      && is_rotten(server.loading->second.restore)) {
    server.unreadable = server.loading->second.restore;
    server.loading.reset();
    server.report_at = now_;
    ++tally_.rotten;
  }
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

inline bool world::push(model_server& server, const model_worker& worker, batch_id batch,
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
  server.clocks.advance({worker.id.index}, worker.id.incarnation, clock + 1, clock + 1);
  return server.values->marks.contains(batch) && !chance(options_.loss);
}

inline bool world::pull(model_server& server, const model_worker& worker, batch_id batch) {
  if (server.generation != worker.generation
      || server.clocks.objection({worker.id.index}, worker.id.incarnation))
    return false;
  server.clocks.advance({worker.id.index}, worker.id.incarnation, worker.clock, worker.clock);
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
inline void world::check_staleness(const model_worker& reader) const {
  for (const auto& [index, other] : workers_) {
    if (!other.admitted || other.stalled_once || !other.next_open())
      continue;
    require(other.clock + options_.sync.staleness_clocks >= reader.clock,
            "worker " + std::to_string(index) + " at clock " + std::to_string(other.clock)
              + " is too far behind a reader at " + std::to_string(reader.clock));
  }
}

// -- workers ------------------------------------------------------------------------------------

inline void world::obey(model_worker& worker, const orders& what) {
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
  // Not only when `admitted` turns true here: the orders in between, which said false, may be lost.
  if (mine.admitted)
    worker.clock = std::max(worker.clock, mine.start_clock);
  worker.admitted = mine.admitted;
  std::map<std::uint64_t, std::pair<lease, std::set<std::uint64_t>>> held;
  for (const auto& one : mine.leases)
    held[one.id] = {one, worker.leases.contains(one.id) ? worker.leases[one.id].second
                                                        : std::set<std::uint64_t>{}};
  worker.leases = std::move(held);
  std::erase_if(worker.flights, [&](const auto& x) { return !worker.has_open({x.first}); });
}

inline model_server* world::reach(const model_worker& worker, std::uint32_t index) {
  for (const auto& entry : worker.seen.servers) {
    const auto at = servers_.find(index);
    if (entry.server.value == index && entry.serving && at != servers_.end()
        && at->second.id.incarnation == entry.incarnation && at->second.values)
      return &at->second;
  }
  return nullptr;
}

inline void world::act(model_worker& worker) {
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

} // namespace troupe::model
