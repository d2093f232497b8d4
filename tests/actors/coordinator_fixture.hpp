// A coordinator under test, its members driven by hand.
#pragma once

#include "actors/cluster/coordinator.hpp"

#include "doctest/doctest.h"

#include <algorithm>
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

/// A coordinator, and the last orders of everyone. Members are driven by hand.
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
        last[x->orders.to] = x->orders;
        ++sent[x->orders.to];
      } else if (const auto* find = std::get_if<find_checkpoint_effect>(&effect)) {
        ++finds;
        passed_over = find->unreadable;
      } else if (const auto* commit = std::get_if<commit_checkpoint_effect>(&effect)) {
        commits.push_back(commit->manifest);
      } else if (const auto* state = std::get_if<persist_effect>(&effect)) {
        persisted.push_back(state->state);
      } else if (const auto* event = std::get_if<event_effect>(&effect)) {
        events.push_back(event->text);
      }
    }
  }

  void receive(const member_id& from, decltype(report::body) body) {
    report what{from, fingerprint(job), ++sequence, 0, std::move(body)};
    coordinator_effects effects;
    boss->receive(what, now, effects);
    keep(effects);
  }

  void worker(std::uint32_t index, std::uint64_t incarnation, worker_report body = {}) {
    body.generation = persisted.back().generation;
    receive({role::worker, index, {incarnation}}, std::move(body));
  }

  /// Reports as an obedient server: the newest assignment is loaded, candidates are promised clock
  /// 0.
  void server(std::uint32_t index, std::uint64_t incarnation, std::uint64_t marks = 0) {
    const member_id who{role::server, index, {incarnation}};
    server_report body;
    if (last.contains(who))
      body = obeying(std::get<server_orders>(last[who].body), marks);
    body.address = "s" + std::to_string(incarnation);
    receive(who, std::move(body));
  }

  /// What a server says that does as it is told and knows all workers.
  static server_report obeying(const server_orders& mine, std::uint64_t marks) {
    server_report body;
    body.assignment = mine.assignment;
    body.generation = mine.generation;
    body.marks = batch_set(batch_id{marks});
    for (auto entry : mine.workers) {
      entry.known = true;
      body.clocks.push_back(entry);
    }
    return body;
  }

  /// The same with a part of a checkpoint, as asked for.
  void part(std::uint32_t index, std::uint64_t incarnation, std::uint64_t marks,
            std::uint64_t failed = 0) {
    const member_id who{role::server, index, {incarnation}};
    const auto& mine = std::get<server_orders>(last[who].body);
    auto body = obeying(mine, marks);
    if (failed == 0)
      body.part = {mine.checkpoint, {index}, {}, 0};
    body.checkpoint_failed = failed;
    body.checkpoint_failure = "the disk is full";
    receive(who, std::move(body));
  }

  void observer(observer_report body = {}) { receive({role::observer, 0, {900}}, std::move(body)); }
  void death(role kind, std::uint32_t index, std::uint64_t incarnation) {
    deaths.push_back({{kind, index, {incarnation}}});
    observer_report body;
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
    storage::found what;
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

  /// Two servers serve, workers 0 and 1 are admitted and have leases.
  void train() {
    for (int round = 0; round < 3; ++round) {
      server(0, 100);
      server(1, 101);
      worker(0, 200);
      worker(1, 201);
    }
    REQUIRE(boss->phase() == job_phase::training);
    REQUIRE(orders_of(0, 200).admitted);
    REQUIRE_FALSE(orders_of(0, 200).leases.empty());
  }

  const worker_orders& orders_of(std::uint32_t index, std::uint64_t incarnation) {
    return std::get<worker_orders>(last.at({role::worker, index, {incarnation}}).body);
  }
  const server_orders& orders_of_server(std::uint32_t index, std::uint64_t incarnation) {
    return std::get<server_orders>(last.at({role::server, index, {incarnation}}).body);
  }
  const orders& all_orders(role kind, std::uint32_t index, std::uint64_t incarnation) {
    return last.at({kind, index, {incarnation}});
  }
  bool told(const std::string& text) const {
    return std::any_of(events.begin(), events.end(),
                       [&](const std::string& x) { return x.find(text) != std::string::npos; });
  }

  job_spec job;
  coordinator_options options;
  time_point now{10s};
  std::optional<coordinator> boss;
  std::uint64_t sequence = 0;
  std::map<member_id, orders> last;
  std::map<member_id, int> sent;
  std::vector<troupe::death> deaths;
  int finds = 0;
  std::vector<std::uint64_t> passed_over; ///< By the last search.
  std::vector<storage::manifest> commits;
  std::vector<storage::coordinator_state> persisted;
  std::vector<std::string> events;
};

inline storage::coordinator_state state_of(const coordinator_fixture& before) {
  return before.persisted.back();
}

} // namespace troupe
