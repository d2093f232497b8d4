// How the model's servers behave: like server_actor and hosted_replica, with sums for values.
#pragma once

#include "tests/actors/cluster_model.hpp"

namespace troupe::model {

using namespace std::chrono_literals;

inline bool takes_part(const chain_config& config, const member_id& who) {
  return config.joiner == who || std::ranges::find(config.members, who) != config.members.end();
}

inline const chain_config& newest_of(const chain_record& record) {
  return record.proposed ? *record.proposed : record.active;
}

// -- reports ------------------------------------------------------------------------------------

inline chain_status model_replica::status() const {
  return decider ? decider->status()
                 : chain_status{generation, {}, newest_of(record).epoch, false, false};
}

inline chain_report model_replica::describe(chain_id chain) const {
  chain_report mine;
  mine.chain = chain;
  mine.status = status();
  mine.part = part;
  mine.checkpoint_failed = checkpoint_failed;
  mine.checkpoint_failure = "by chance";
  mine.unreadable = unreadable;
  mine.failed = unreadable == 0 ? "" : "a checkpoint is rotten";
  if (decider && decider->is_head() && decider->state() != nullptr) {
    mine.marks = decider->state()->marks();
    mine.clocks = decider->state()->clocks();
  }
  return mine;
}

inline std::vector<chain_status> model_server::statuses() const {
  std::vector<chain_status> all;
  for (const auto& [unused, at] : replicas)
    all.push_back(at.status());
  return all;
}

inline report model_server::describe(std::uint64_t job, time_point now) {
  server_report body;
  body.address = "s" + std::to_string(id.index);
  body.clock_ns = static_cast<std::uint64_t>(now.count());
  for (const auto& [chain, at] : replicas)
    body.chains.push_back(at.describe(chain));
  told = statuses();
  return {id, job, ++sequence, 0, body};
}

// -- orders -------------------------------------------------------------------------------------

inline void world::start_server(std::uint32_t index) {
  servers_[index] = {};
  servers_[index].id = {role::server, index, next_incarnation()};
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
  for (const auto& [chain, record] : mine.chains)
    obey(server, *server.replicas.try_emplace(chain).first, record, mine);
  if (server.statuses() != server.told
      || std::ranges::any_of(mine.workers, [](const auto& x) { return !x.known; }))
    server.report_at = now_;
}

inline void world::obey(model_server& server, hosted& at, const chain_record& record,
                        const server_orders& what) {
  auto& mine = at.second;
  const bool other_workers = what.workers != mine.orders.workers;
  mine.record = record;
  mine.orders = what;
  const auto& newest = newest_of(record);
  const bool is_other = newest.generation != mine.generation;
  // It takes the place of a founder, and was told of this generation when it was none.
  const bool is_late = !is_other && newest.generation != record.active.generation && mine.decider
                       && !mine.decider->status().complete && newest.joiner != server.id
                       && takes_part(newest, server.id);
  if (is_late || (is_other && (takes_part(newest, server.id) || mine.generation.value == 0)))
    begin_generation(server, at, newest);
  if (!mine.decider)
    return;
  decide(server, at, [&](replica_effects& effects) {
    mine.decider->renew(time_point{what.heard_ns});
    if (other_workers)
      mine.decider->set_workers(what.workers, now_, effects);
    mine.decider->obey(record, now_, effects);
  });
  obey_checkpoint(server, at);
}

inline void world::begin_generation(model_server& server, hosted& at, const chain_config& newest) {
  auto& mine = at.second;
  model_replica next;
  next.record = mine.record;
  next.orders = mine.orders;
  next.generation = newest.generation;
  next.job_generation = mine.orders.generation;
  next.next_token = mine.next_token;
  next.cut = mine.cut;
  next.checkpoint_failed = mine.checkpoint_failed;
  mine = std::move(next);
  if (newest.joiner != server.id && takes_part(newest, server.id))
    mine.loaded_at = now_ + milliseconds{pick(5, 80)};
  else
    begin(server, at, {});
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

inline void world::end_loading(model_server& server, hosted& at) {
  auto& mine = at.second;
  mine.loaded_at.reset();
  server.report_at = now_;
  const auto origin = mine.record.origin;
  replica_image image;
  if (origin == 0) {
    for (std::uint32_t p = 0; p < job_.partitions; ++p)
      if (mine.orders.chain_of[p] == at.first)
        image.partitions.push_back({{p}, 0, {batch_set{}}});
    tally_.rollbacks_to_zero += persisted_.term > 1 || mine.orders.generation.value > 0 ? 1 : 0;
  } else if (is_rotten(origin)) {
    mine.unreadable = origin;
    ++tally_.rotten;
    return;
  } else {
    const auto& stored = checkpoints_.at(origin);
    require(stored.committed, "restored from a checkpoint without commit");
    image = stored.parts.at(at.first);
    ++tally_.restores;
  }
  begin(server, at, image);
  begun_[{at.first, mine.generation}] = {mine.job_generation, image.values.marks};
  obey(server, at, chain_record{mine.record}, server_orders{mine.orders});
}

/// Without partitions: it has to join.
inline void world::begin(model_server& server, hosted& at, const replica_image& image) {
  auto& mine = at.second;
  mine.values = image.values;
  mine.job_generation = mine.orders.generation;
  mine.decider.emplace(job_, server.id, mine.job_generation, mine.generation, image.partitions);
  decide(server, at, [&](replica_effects& effects) {
    mine.decider->set_workers(mine.orders.workers, now_, effects);
  });
}

inline void world::obey_checkpoint(model_server& server, hosted& at) {
  auto& mine = at.second;
  const auto number = mine.orders.checkpoint;
  if (number <= std::max(mine.cut, mine.checkpoint_failed) || !mine.decider->leads())
    return;
  const bool passed = options_.sync.mode == consistency_mode::bsp
                      && clocks_of(mine.values.marks) > mine.orders.checkpoint_clock;
  if (passed || (now_ < options_.kills_until && chance(0.05)))
    mine.checkpoint_failed = number;
  else
    decide(server, at, [&](replica_effects& effects) {
      mine.decider->request_cut(number, mine.orders.checkpoint_clock, now_, effects);
    });
}

inline void world::act(model_server& server) {
  const bool is_tick = now_.count() / 1000000 % 50 == 0;
  for (auto& at : server.replicas) {
    auto& mine = at.second;
    if (mine.loaded_at && *mine.loaded_at <= now_)
      end_loading(server, at);
    if (mine.writing && mine.writing->first <= now_) {
      checkpoints_[mine.writing_number].parts[at.first] = mine.writing->second;
      mine.part = {mine.writing_number, at.first, {}, 0};
      mine.writing.reset();
      server.report_at = now_;
    }
    if (mine.decider && is_tick)
      decide(server, at, [&](replica_effects& x) { mine.decider->tick(now_, x); });
  }
  if (server.report_at <= now_ || (is_tick && server.statuses() != server.told)) {
    post(server.describe(fingerprint_, now_));
    server.report_at = now_ + 100ms;
  }
}

// -- effects ------------------------------------------------------------------------------------

template <class Event>
void world::decide(model_server& server, hosted& at, Event event) {
  replica_effects effects;
  event(effects);
  for (std::size_t i = 0; i < effects.size(); ++i) {
    auto effect = std::move(effects[i]);
    std::visit([&](auto& x) { run(server, at, x, effects); }, effect);
  }
}

inline void world::run(model_server&, hosted& at, step_effect& effect, replica_effects& more) {
  require(effect.what.skip.empty(), "the partitions of a chain differ");
  check_clocks(at);
  for (const auto& push : effect.pushes)
    at.second.values.apply(push->step.batch);
  at.second.decider->applied(now_, more);
}

/// bsp: chains of one generation of the job have begun at the same clock.
inline void world::check_clocks(const hosted& at) const {
  if (options_.sync.mode != consistency_mode::bsp)
    return;
  const auto& mine = begun_.at({at.first, at.second.generation});
  for (std::uint32_t i = 0; i < persisted_.chains.size(); ++i) {
    const auto other = begun_.find({{i}, persisted_.chains[i].active.generation});
    require(other == begun_.end() || other->second.first != mine.first
              || other->second.second == mine.second,
            "chains of one generation began at different clocks");
  }
}

inline void world::run(model_server&, hosted& at, acknowledge_effect& effect, replica_effects&) {
  const auto request = at.second.requests.extract(effect.push).mapped();
  tally_.repeats += effect.receipt.duplicate ? 1 : 0;
  require(at.second.values.marks.contains(request.batch), "acknowledged and not applied");
  auto* worker = find_worker(request.worker);
  if (worker == nullptr || chance(options_.loss))
    return;
  const auto flight = worker->flights.find(request.batch.value);
  if (flight != worker->flights.end() && flight->second.clock == request.clock
      && worker->generation == at.second.job_generation)
    flight->second.acknowledged.insert(at.first);
}

inline void world::run(model_server&, hosted& at, refuse_effect& effect, replica_effects&) {
  const auto request = at.second.requests.extract(effect.request).mapped();
  auto* worker = find_worker(request.worker);
  if (worker != nullptr && worker->pulling && worker->pulling->batch == request.batch)
    worker->pulling->retry = std::min(worker->pulling->retry, now_ + 20ms);
}

inline void world::run(model_server&, hosted& at, answer_effect& effect, replica_effects&) {
  const auto request = at.second.requests.extract(effect.pull).mapped();
  if (options_.sync.mode == consistency_mode::bsp)
    require(clocks_of(at.second.values.marks) >= bsp_clock(job_, request.batch),
            "a pull was answered before its clock");
  auto* worker = find_worker(request.worker);
  if (worker == nullptr || worker->generation != at.second.job_generation)
    return;
  if (options_.sync.mode == consistency_mode::ssp)
    check_staleness(request.clock);
  auto& pull = worker->pulling;
  if (pull && pull->batch == request.batch && pull->clock == request.clock)
    pull->answered.insert(at.first);
}

inline void world::run(model_server&, hosted& at, cut_effect& effect, replica_effects&) {
  auto& mine = at.second;
  mine.writing = {now_ + milliseconds{pick(5, 80)},
                  {mine.values, mine.decider->state()->partitions()}};
  mine.writing_number = mine.cut = effect.checkpoint;
}

inline void world::run(model_server& server, hosted& at, peer_effect& effect, replica_effects&) {
  post(peer_letter{effect.to, at.first, server.id, std::move(effect.what)});
}

inline void world::run(model_server& server, hosted& at, request_copy_effect& effect,
                       replica_effects&) {
  post(peer_letter{effect.from, at.first, server.id, copy_request{effect.epoch, 0, {}}});
}

inline void world::send_copy(model_server& server, hosted& at, const member_id& to, copy what) {
  const auto& state = *at.second.decider->state();
  what.clock_max = state.pull_clock_max();
  what.image = {at.second.values, state.partitions()};
  post(peer_letter{to, at.first, server.id, std::move(what)});
}

// -- letters of other replicas ------------------------------------------------------------------

inline void world::take(model_server& server, hosted& at, const peer_letter& what) {
  auto& mine = at.second;
  if (!mine.decider)
    return;
  const auto& from = what.from;
  decide(server, at, [&](replica_effects& effects) {
    if (const auto* asked = std::get_if<copy_request>(&what.what)) {
      if (const auto index = mine.decider->copy_for(from, asked->epoch))
        send_copy(server, at, from, {.epoch = asked->epoch, .index = *index, .image = {}});
    } else if (const auto* brought = std::get_if<copy>(&what.what)) {
      const auto& image = brought->image;
      if (!mine.decider->install(brought->epoch, brought->index, brought->clock_max,
                                 image.partitions, now_, effects))
        return;
      mine.values = image.values;
      ++tally_.copies;
    } else if (const auto* entry = std::get_if<entry_message>(&what.what)) {
      mine.decider->receive(from, *entry, now_, effects);
    } else if (const auto* committed = std::get_if<committed_message>(&what.what)) {
      mine.decider->receive(from, *committed, now_, effects);
    } else if (const auto* joined = std::get_if<joined_message>(&what.what)) {
      mine.decider->receive(from, *joined, now_, effects);
    }
  });
}

} // namespace troupe::model
