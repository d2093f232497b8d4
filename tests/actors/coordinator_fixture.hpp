// A coordinator under test, its members driven by hand.
#pragma once

#include "actors/protocol/coordinator/coordinator.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

using namespace std::chrono_literals;

inline job_spec job_of_mode(consistency_mode mode, std::uint32_t servers = 2,
                            std::uint32_t workers = 2, std::uint64_t batches = 64) {
  job_spec job;
  job.name = "rules";
  job.partitions = 8;
  job.servers = servers;
  job.workers = workers;
  job.batch_samples = 1;
  job.samples = batches;
  table_spec table;
  table.name = "w";
  table.shape = {64};
  table.sync.mode = mode;
  job.tables = {table};
  return job;
}

/// An event's fields: names and values as text.
using event_texts = std::map<std::string, std::string>;

/// asp, three servers.
inline job_spec job_of_replicas(std::uint32_t replicas, std::uint64_t batches = 1000,
                                consistency_mode mode = consistency_mode::asp) {
  auto job = job_of_mode(mode, 3, 2, batches);
  job.replicas = replicas;
  return job;
}

/// Holds a coordinator and the last desired state of each member. Members are driven by hand.
struct coordinator_fixture {
  explicit coordinator_fixture(job_spec what, coordinator_options how = {},
                               storage::coordinator_state stored = {},
                               std::uint64_t last_checkpoint = 0)
      : job(std::move(what)), options(how) {
    coordinator_effects effects;
    boss.emplace(job, options, std::move(stored), last_checkpoint, now, effects);
    keep(effects);
  }

  void keep(const coordinator_effects& effects) {
    for (const auto& effect : effects) {
      if (const auto* x = std::get_if<send_effect>(&effect)) {
        last[x->desired_state.to] = x->desired_state;
        ++sent[x->desired_state.to];
      } else if (const auto* find = std::get_if<find_checkpoint_effect>(&effect)) {
        ++finds;
        passed_over = find->unreadable;
      } else if (const auto* commit = std::get_if<commit_checkpoint_effect>(&effect)) {
        commits.push_back(commit->manifest);
      } else if (const auto* state = std::get_if<persist_effect>(&effect)) {
        persisted.push_back(state->state);
      } else if (const auto* event = std::get_if<event_effect>(&effect)) {
        events.push_back(event->what);
      }
    }
  }

  /// Reports as this member, with the address "s100" of incarnation 100 if its role always
  /// listens.
  void receive(const member_id& from, decltype(status_message::body) body) {
    receive(from, std::move(body),
            traits_of(from.role).listens == listening::always
              ? "s" + std::to_string(from.incarnation.value)
              : "");
  }
  void receive(const member_id& from, decltype(status_message::body) body, std::string address) {
    const status_message what{from, fingerprint(job), ++sequence,
                              0,    std::move(body),  std::move(address)};
    coordinator_effects effects;
    boss->receive(what, now, effects);
    keep(effects);
  }

  void worker(std::uint32_t index, std::uint64_t incarnation, worker_status body = {}) {
    body.generation = persisted.back().generation;
    receive({role::worker, index, {incarnation}}, std::move(body));
  }

  /// Reports as a server that follows its desired state: its replicas are loaded and sealed, and
  /// candidates are promised clock 0.
  void server(std::uint32_t index, std::uint64_t incarnation, std::uint64_t applied = 0) {
    const member_id who{role::server, index, {incarnation}};
    server_status body;
    if (!last.contains(who))
      receive(who, body); // The server has just started.
    if (!last.contains(who))
      return;
    body.chains = reconciled_status(who, applied).chains;
    receive(who, std::move(body));
  }

  static bool leads(const chain_metadata& record, const member_id& who) {
    return !record.active.members.empty() && record.active.members.front() == who;
  }

  /// Returns the status of a server that follows its desired state and knows all workers.
  server_status reconciled_status(const member_id& who, std::uint64_t applied) {
    const auto& mine = std::get<desired_server>(last.at(who).body);
    server_status body;
    for (const auto& [chain, record] : mine.chains) {
      const auto& newest = record.proposed ? *record.proposed : record.active;
      const bool goes_on = newest.generation == record.active.generation;
      const bool is_tail = !record.active.members.empty() && record.active.members.back() == who;
      replica_status replica;
      replica.shard = chain;
      replica.recovered = recovered;
      replica.status = {newest.generation, goes_on ? record.active.config : config_id{},
                        newest.config, members_of(record).contains(who),
                        goes_on && is_tail && record.active.joiner.has_value()};
      if (leads(record, who)) {
        replica.applied = batch_set(batch_id{applied});
        for (auto entry : mine.workers) {
          entry.known = true;
          replica.clocks.push_back(entry);
        }
      }
      body.chains.push_back(replica);
    }
    return body;
  }

  /// Reports with the requested checkpoint part of each chain that the server leads.
  void part(std::uint32_t index, std::uint64_t incarnation, std::uint64_t applied,
            std::uint64_t failed = 0) {
    const member_id who{role::server, index, {incarnation}};
    const auto& mine = std::get<desired_server>(last.at(who).body);
    auto body = reconciled_status(who, applied);
    for (auto& replica : body.chains) {
      if (!leads(record(replica.shard.value), who))
        continue;
      if (failed == 0)
        replica.part = {mine.checkpoint, replica.shard, {}, 0};
      replica.checkpoint_failed = failed;
      replica.checkpoint_failure = "the disk is full";
    }
    receive(who, std::move(body));
  }

  /// Returns the status of a server that could not read the checkpoint its chain begins with.
  server_status unreadable(std::uint32_t index, std::uint64_t incarnation, std::uint64_t checkpoint,
                           const std::string& why) {
    const member_id who{role::server, index, {incarnation}};
    auto body = reconciled_status(who, 0);
    for (auto& replica : body.chains) {
      if (!members_of(record(replica.shard.value)).contains(who))
        continue;
      replica.status.complete = false;
      replica.status.config = {};
      replica.unreadable = checkpoint;
      replica.failed = failure{errc::io_failed, why};
    }
    return body;
  }

  /// Reports as an actor, with the address "a500" of incarnation 500 if it `listens`.
  void actor(std::uint32_t index, std::uint64_t incarnation, actor_status body = {},
             bool listens = true) {
    receive({role::actor, index, {incarnation}}, std::move(body),
            listens ? "a" + std::to_string(incarnation) : "");
  }
  const desired_actor& desired_of_actor(std::uint32_t index, std::uint64_t incarnation) {
    return std::get<desired_actor>(last.at({role::actor, index, {incarnation}}).body);
  }

  void observer(observer_status body = {}) { receive({role::observer, 0, {900}}, std::move(body)); }
  void death(role kind, std::uint32_t index, std::uint64_t incarnation) {
    deaths.push_back({{kind, index, {incarnation}}});
    observer_status body;
    body.deaths = deaths;
    observer(body);
  }

  void tick(time_point step = 20ms) {
    now += step;
    coordinator_effects effects;
    boss->tick(now, effects);
    keep(effects);
  }

  void search_failed(const failure& why) {
    coordinator_effects effects;
    boss->search_failed(why, now, effects);
    keep(effects);
  }

  void found(std::optional<std::uint64_t> checkpoint, std::vector<failure> refused = {}) {
    storage::checkpoint_search_result what;
    what.refused = std::move(refused);
    if (checkpoint) {
      what.newest.emplace();
      what.newest->checkpoint = *checkpoint;
    }
    coordinator_effects effects;
    boss->checkpoint_found(what, now, effects);
    keep(effects);
  }

  void committed(std::uint64_t number, result<void> outcome = {}) {
    coordinator_effects effects;
    boss->checkpoint_committed(number, outcome, now, effects);
    keep(effects);
  }

  /// The servers join, start the generations of their chains and begin to serve.
  void serve(const std::map<std::uint32_t, std::uint64_t>& servers, std::uint64_t applied = 0) {
    for (int round = 0; round < 3; ++round)
      for (const auto& [index, incarnation] : servers)
        server(index, incarnation, applied);
  }

  /// Servers 0 and 1 serve, workers 0 and 1 are admitted and have leases.
  void train() {
    serve({{0, 100}, {1, 101}});
    for (int round = 0; round < 3; ++round) {
      server(0, 100);
      server(1, 101);
      worker(0, 200);
      worker(1, 201);
    }
    REQUIRE(boss->phase() == job_phase::training);
    REQUIRE(desired_of(0, 200).admitted);
    REQUIRE_FALSE(desired_of(0, 200).leases.empty());
  }

  const desired_worker& desired_of(std::uint32_t index, std::uint64_t incarnation) {
    return std::get<desired_worker>(last.at({role::worker, index, {incarnation}}).body);
  }
  const desired_server& desired_of_server(std::uint32_t index, std::uint64_t incarnation) {
    return std::get<desired_server>(last.at({role::server, index, {incarnation}}).body);
  }
  /// Returns the chains of which the server's desired state makes it a member.
  std::vector<desired_chain> chains_of(std::uint32_t index, std::uint64_t incarnation) {
    auto chains = desired_of_server(index, incarnation).chains;
    std::erase_if(chains, [&](const desired_chain& x) {
      return !members_of(x.record).contains({role::server, index, {incarnation}});
    });
    return chains;
  }
  /// Returns the record of the server's only chain, from its desired state.
  chain_metadata record_of(std::uint32_t index, std::uint64_t incarnation) {
    const auto chains = chains_of(index, incarnation);
    REQUIRE(chains.size() == 1);
    return chains.front().record;
  }
  /// Returns the record as it was persisted last.
  const chain_metadata& record(std::uint32_t chain) const {
    return persisted.back().chains.at(chain);
  }
  /// Returns the servers of the chain with their incarnations: "0.100 1.101 +2.102". A proposed
  /// configuration follows as ", then ...".
  std::string text_of(std::uint32_t chain) const {
    const auto text = [](const chain_config& config) {
      std::string all;
      const auto add = [&](const member_id& who, const char* before) {
        all += (all.empty() ? "" : " ") + std::string{before} + std::to_string(who.index) + "."
               + std::to_string(who.incarnation.value);
      };
      for (const auto& who : config.members)
        add(who, "");
      if (config.joiner)
        add(*config.joiner, "+");
      return all;
    };
    const auto& [active, base_checkpoint, proposed] = record(chain);
    return text(active) + (proposed ? ", then " + text(*proposed) : "");
  }
  const desired_state& all_desired(role kind, std::uint32_t index, std::uint64_t incarnation) {
    return last.at({kind, index, {incarnation}});
  }
  /// Returns whether an event of the kind has all these fields, written as text.
  bool told(event_kind kind, const event_texts& fields = {}) const {
    return times_told(kind, fields) > 0;
  }
  std::ptrdiff_t times_told(event_kind kind, const event_texts& fields = {}) const {
    const auto text = [](const event_value& value) {
      if (const auto* count = std::get_if<std::uint64_t>(&value))
        return std::to_string(*count);
      if (const auto* number = std::get_if<double>(&value))
        return std::to_string(std::llround(*number));
      return std::get<std::string>(value);
    };
    return std::ranges::count_if(events, [&](const job_event& x) {
      return x.kind == kind && std::ranges::all_of(fields, [&](const auto& field) {
               const auto* const value = x.find(field.first);
               return value != nullptr && text(*value) == field.second;
             });
    });
  }
  bool told_loss() const { return told(event_kind::worker_lost) || told(event_kind::server_lost); }
  bool told_rollback() const {
    return told(event_kind::shard_restored) || told(event_kind::shard_restarted);
  }

  job_spec job;
  coordinator_options options;
  bool recovered = false; ///< Whether servers kept the acknowledged state of their chains.
  time_point now{10s};
  std::optional<coordinator> boss;
  std::uint64_t sequence = 0;
  std::map<member_id, desired_state> last;
  std::map<member_id, int> sent;
  std::vector<troupe::death> deaths;
  int finds = 0;
  std::vector<std::uint64_t> passed_over; ///< Passed over by the last search.
  std::vector<storage::manifest> commits;
  std::vector<storage::coordinator_state> persisted;
  std::vector<job_event> events;
};

inline storage::coordinator_state state_of(const coordinator_fixture& before) {
  return before.persisted.back();
}

} // namespace troupe
