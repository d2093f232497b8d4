// How the model's workers behave.
#pragma once

#include "tests/actors/cluster_model.hpp"

namespace troupe::model {

using namespace std::chrono_literals;

// -- messages -----------------------------------------------------------------------------------

inline report model_worker::describe(std::uint64_t job) {
  worker_report body;
  body.generation = generation;
  body.clock = clock;
  body.counters.batches_computed = body.counters.samples_computed = computed;
  body.counters.pushes_acknowledged = computed;
  body.counters.wait_us = static_cast<std::uint64_t>(waited / 1us);
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

// -- orders -------------------------------------------------------------------------------------

inline void world::start_worker(std::uint32_t index) {
  workers_[index] = {};
  workers_[index].id = {role::worker, index, next_incarnation()};
  workers_[index].step_ms = index < options_.slow_workers ? pick(80, 160) : pick(2, 25);
}

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
  if (mine.view.epoch > worker.seen.epoch) {
    const auto before = std::exchange(worker.seen, mine.view);
    // ssp: who has just become head waits until it has heard of everyone.
    for (std::size_t i = 0; worker.pulling && i < before.chains.size(); ++i)
      if (before.chains[i] != worker.seen.chains.at(i))
        worker.pulling->answered.erase(before.chains[i].chain);
  }
  if (mine.view.generation > worker.generation) {
    worker.generation = mine.view.generation;
    worker.leases.clear();
    worker.flights.clear();
    worker.pulling.reset();
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

// -- requests -----------------------------------------------------------------------------------

inline model_worker* world::find_worker(const member_id& who) {
  const auto found = workers_.find(who.index);
  return found != workers_.end() && found->second.id == who ? &found->second : nullptr;
}

/// Where it believes the chain's head to be. What finds nobody there is lost.
inline void world::request(model_worker& worker, chain_id chain, bool is_push, batch_id batch,
                           std::uint64_t clock) {
  if (chain.value >= worker.seen.chains.size() || !worker.seen.chains[chain.value].serving)
    return;
  const auto& head = worker.seen.chains[chain.value].head;
  const auto server = servers_.find(head.index);
  if (server == servers_.end() || server->second.id != head)
    return;
  const auto at = server->second.replicas.find(chain);
  if (at == server->second.replicas.end() || !at->second.decider)
    return;
  const request_token token{at->second.next_token++};
  at->second.requests[token] = {worker.id, batch, is_push, clock};
  const step_header step{{worker.id.index}, worker.id.incarnation, worker.generation, batch, clock};
  decide(server->second, *at, [&](replica_effects& effects) {
    if (!is_push)
      return at->second.decider->pull(token, query{.step = step, .ranges = {{{0}, 0, 0}}}, now_,
                                      effects);
    auto what = std::make_shared<update>();
    what->step = step;
    what->tables = {{0}};
    at->second.decider->push(token, std::move(what), now_, effects);
  });
}

inline void world::send_pushes(model_worker& worker) {
  for (auto flight = worker.flights.begin(); flight != worker.flights.end();) {
    auto& [batch, state] = *flight;
    if (state.retry <= now_) {
      state.retry = now_ + 40ms;
      for (chain_id chain; chain.value < job_.chain_count(); ++chain.value)
        if (!state.acknowledged.contains(chain))
          request(worker, chain, true, {batch}, state.clock);
    }
    if (state.acknowledged.size() < job_.chain_count()) {
      ++flight;
      continue;
    }
    for (auto& [number, entry] : worker.leases) {
      for (std::uint32_t i = 0; i < entry.first.count; ++i)
        if (entry.first.at(i).value == batch)
          entry.second.insert(batch);
      if (entry.second.size() == entry.first.count)
        worker.report_at = now_;
    }
    flight = worker.flights.erase(flight);
  }
}

inline void world::send_pulls(model_worker& worker) {
  const auto limit = options_.sync.mode == consistency_mode::bsp ? job_.workers : 2;
  const auto next = worker.next_open();
  if (worker.computing || !worker.admitted || !next || worker.flights.size() >= limit)
    return;
  auto& pull = worker.pulling;
  if (!pull || pull->batch != *next || pull->clock != worker.clock)
    pull = {*next, worker.clock, {}, now_};
  if (pull->retry <= now_) {
    pull->retry = now_ + 100ms;
    for (chain_id chain; chain.value < job_.chain_count(); ++chain.value)
      if (!pull->answered.contains(chain))
        request(worker, chain, false, *next, worker.clock);
  }
  if (pull->answered.size() < job_.chain_count())
    return;
  pull.reset();
  worker.computing = {*next, now_ + milliseconds{worker.step_ms}};
}

inline void world::act(model_worker& worker) {
  if (now_ < worker.stalled_until)
    return;
  send_pushes(worker);
  if (!worker.computing)
    worker.waited += 5ms;
  if (worker.computing && worker.computing->second <= now_) {
    ++worker.computed;
    const auto batch = worker.computing->first;
    worker.computing.reset();
    if (worker.has_open(batch))
      worker.flights[batch.value] = {worker.clock, {}, now_};
    ++worker.clock;
  }
  send_pulls(worker);
  if (worker.report_at <= now_) {
    post(worker.describe(fingerprint_));
    worker.report_at = now_ + 100ms;
  }
}

/// ssp: nobody who has work is more than the bound behind a reader.
inline void world::check_staleness(std::uint64_t reader_clock) const {
  for (const auto& [index, other] : workers_) {
    if (!other.admitted || other.stalled_once || other.unbound_once || !other.next_open())
      continue;
    require(other.clock + options_.sync.staleness_clocks >= reader_clock,
            "worker " + std::to_string(index) + " at clock " + std::to_string(other.clock)
              + " is too far behind a reader at " + std::to_string(reader_clock));
  }
}

} // namespace troupe::model
