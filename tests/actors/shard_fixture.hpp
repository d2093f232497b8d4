// A shard whose commits come at once (a chain of one) or are held back; its effects as lines of
// text.
#pragma once

#include "actors/protocol/server/shard.hpp"

#include "doctest/doctest.h"

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace troupe::test {

/// Returns a job of one pass of `batches` batches, with a table "t0", "t1", ... for each mode.
inline job_spec job_of(const std::vector<consistency>& modes, std::uint32_t workers = 2,
                       std::uint64_t batches = 16) {
  job_spec job;
  job.name = "test";
  job.partitions = 4;
  job.workers = workers;
  job.samples = batches;
  job.batch_samples = 1;
  for (const consistency& mode : modes) {
    table_spec table;
    table.name = "t" + std::to_string(job.tables.size());
    table.shape = {4};
    table.sync = mode;
    job.tables.push_back(table);
  }
  return job;
}

inline consistency bsp() { return {consistency_mode::bsp, 0}; }
inline consistency asp() { return {consistency_mode::asp, 0}; }
inline consistency ssp(std::uint32_t staleness) { return {consistency_mode::ssp, staleness}; }

inline std::vector<shard_partition> fresh(const job_spec& job,
                                          const std::vector<std::uint32_t>& partitions) {
  std::vector<shard_partition> all;
  for (const std::uint32_t p : partitions)
    all.push_back({{p}, 0, std::vector<batch_set>(job.tables.size())});
  return all;
}

inline incarnation_id first_start(std::uint32_t worker) { return {1000 + worker}; }

inline clock_entry member(std::uint32_t worker, std::uint64_t clock = 0) {
  return {{worker}, first_start(worker), clock, true};
}
inline clock_entry joiner(std::uint32_t worker) {
  return {{worker}, first_start(worker), 0, false};
}

inline std::string text_of(const std::vector<table_id>& tables) {
  std::string text;
  for (const table_id table : tables)
    text += " " + std::to_string(table.value);
  return text;
}

/// Names the entry's pushes or, where another replica proposed it, its batches.
inline std::string text_of(const propose_effect& entry) {
  std::string text;
  for (const request_token token : entry.pushes)
    text += " " + std::to_string(token.value);
  if (entry.pushes.empty())
    for (const step_header& step : entry.entry.steps)
      text += " b" + std::to_string(step.batch.value);
  return text + " to" + text_of(entry.entry.tables);
}

inline std::string text_of(const shard_effect& effect) {
  struct {
    std::string operator()(const propose_effect& x) const { return "propose" + text_of(x); }
    std::string operator()(const apply_effect& x) const {
      std::string text;
      for (const auto& [table, partition] : x.skip)
        text += " skip " + std::to_string(table.value) + "/" + std::to_string(partition.value);
      return x.staleness_versions == 0 ? text
                                       : text + " late " + std::to_string(x.staleness_versions);
    }
    std::string operator()(const acknowledge_effect& x) const {
      return "ack " + std::to_string(x.push.value) + " version "
             + std::to_string(x.push_reply.version) + (x.push_reply.duplicate ? " duplicate" : "");
    }
    std::string operator()(const refuse_effect& x) const {
      return "refuse " + std::to_string(x.request.value) + " " + to_string(x.why.code) + ": "
             + x.why.text;
    }
    std::string operator()(const answer_effect& x) const {
      return "answer " + std::to_string(x.pull.value) + " version " + std::to_string(x.version)
             + (x.previous.empty() ? "" : " previous" + text_of(x.previous));
    }
    std::string operator()(const cut_effect& x) const {
      return "cut " + std::to_string(x.checkpoint);
    }
  } const write;
  return std::visit(write, effect);
}

using lines = std::vector<std::string>;

/// Every call returns its effects, one line each.
struct shard_fixture {
  explicit shard_fixture(job_spec of, std::vector<shard_partition> partitions = {},
                         std::vector<clock_entry> workers = {member(0), member(1)})
      : job(std::move(of)),
        decide(job, {1}, partitions.empty() ? fresh(job, {0, 1}) : std::move(partitions)) {
    shard_effects none;
    decide.set_workers(workers, none);
  }

  step_header step(std::uint32_t worker, std::uint64_t batch, std::uint64_t clock) const {
    return {{worker}, first_start(worker), {1}, {batch}, clock};
  }

  std::vector<table_id> all_tables() const {
    std::vector<table_id> tables;
    for (std::uint32_t i = 0; i < job.tables.size(); ++i)
      tables.push_back({i});
    return tables;
  }

  lines push(std::uint64_t token, std::uint32_t worker, std::uint64_t batch, std::uint64_t clock,
             std::uint64_t base_version = 0) {
    return push(token, step(worker, batch, clock), all_tables(), base_version);
  }
  lines push(std::uint64_t token, const step_header& header, const std::vector<table_id>& tables,
             std::uint64_t base_version = 0) {
    return push(token, std::vector{header}, tables, base_version);
  }
  lines push(std::uint64_t token, const std::vector<step_header>& steps,
             const std::vector<table_id>& tables, std::uint64_t base_version = 0) {
    shard_effects effects;
    decide.push({token}, steps, tables, base_version, effects);
    return carry_out(effects);
  }

  lines pull(std::uint64_t token, std::uint32_t worker, std::uint64_t batch, std::uint64_t clock) {
    return pull(token, step(worker, batch, clock), all_tables());
  }
  lines pull(std::uint64_t token, const step_header& header, const std::vector<table_id>& tables,
             bool latest = false) {
    shard_effects effects;
    decide.pull({token}, {.step = header, .latest = latest, .tables = tables}, now, effects);
    return carry_out(effects);
  }

  /// Makes the oldest pending entry final.
  lines commit() {
    shard_effects effects;
    decide.commit(effects);
    return carry_out(effects);
  }
  void append(const entry_header& entry) {
    log.push_back({{}, entry});
    decide.append(entry);
  }
  lines step_down() {
    shard_effects effects;
    decide.step_down(effects);
    return carry_out(effects);
  }
  lines truncate() {
    log.clear();
    shard_effects effects;
    decide.truncate(effects);
    return carry_out(effects);
  }

  lines set_workers(const std::vector<clock_entry>& workers) {
    shard_effects effects;
    decide.set_workers(workers, effects);
    return carry_out(effects);
  }
  lines tick() {
    shard_effects effects;
    decide.tick(now, effects);
    return carry_out(effects);
  }
  lines request_cut(std::uint64_t checkpoint, std::uint64_t clock) {
    shard_effects effects;
    decide.request_cut(checkpoint, clock, effects);
    return carry_out(effects);
  }

  lines carry_out(shard_effects& effects) {
    lines text;
    for (std::size_t i = 0; i < effects.size(); ++i) {
      if (const auto* entry = std::get_if<propose_effect>(&effects[i])) {
        log.push_back(*entry);
        if (hold_commits)
          text.push_back(text_of(effects[i]));
        else
          decide.commit(effects);
      } else if (const auto* step = std::get_if<apply_effect>(&effects[i])) {
        text.push_back(apply(*step, effects));
      } else {
        text.push_back(text_of(effects[i]));
      }
    }
    return text;
  }

  std::string apply(const apply_effect& step, shard_effects& more) {
    const propose_effect entry = std::move(log.front());
    log.pop_front();
    const auto mode = job.tables[entry.entry.tables.front().value].sync.mode;
    CHECK(step.pushes == (mode == consistency_mode::bsp ? entry.entry.steps.size() : 1));
    CHECK(step.tables == entry.entry.tables);
    const std::string text = "apply" + text_of(entry) + text_of(shard_effect{step});
    if (not_finite)
      decide.discarded({errc::non_finite, "nan"}, more);
    else
      decide.applied(more);
    return text;
  }

  job_spec job;
  shard decide;
  time_point now{0};
  std::deque<propose_effect> log; ///< Pending entries, oldest first.
  bool hold_commits = false;
  bool not_finite = false; ///< Makes steps fail.
};

} // namespace troupe::test
