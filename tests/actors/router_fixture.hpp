// Shows a router and its effects as lines of text.
#pragma once

#include "actors/protocol/worker/router.hpp"

#include "doctest/doctest.h"

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace troupe::test {

/// Tables "a" (10000 elements: blocks of 4096, 4096, 1808) and "b" (3 elements) in 4 partitions.
inline job_spec routed_job() {
  job_spec job;
  job.name = "routed";
  job.partitions = 4;
  job.servers = 2;
  job.workers = 2;
  job.samples = 100;
  job.batch_samples = 1;
  for (const auto& [name, size] : {std::pair{"a", 10'000}, std::pair{"b", 3}}) {
    table_spec table;
    table.name = name;
    table.shape = {static_cast<std::uint64_t>(size)};
    job.tables.push_back(table);
  }
  return job;
}

/// Returns server s with incarnation 100 + s.
inline member_id routed_server(std::uint32_t index) { return {role::server, index, {100 + index}}; }

/// Partition p is of chain p % 2; chain c has server c as its head. All chains serve.
inline view routed_view(const job_spec& job, std::uint64_t config = 1) {
  view made{{config}, {1}, {}, {}};
  for (std::uint32_t s = 0; s < job.servers; ++s)
    made.chains.push_back({{s}, routed_server(s), true});
  for (std::uint32_t p = 0; p < job.partitions; ++p)
    made.shard_of.push_back({p % job.servers});
  return made;
}

inline std::shared_ptr<float> numbers(std::size_t count) {
  static buffer_pool pool;
  auto made = pool.floats(count);
  for (std::size_t i = 0; i < count; ++i)
    made.get()[i] = static_cast<float>(i);
  return made;
}

/// Returns a push of all tables.
inline push_request whole_push(const job_spec& job, std::uint64_t batch = 0) {
  push_request made;
  made.step.batch = {batch};
  made.gradient_norm = 2;
  for (std::uint32_t t = 0; t < job.tables.size(); ++t) {
    made.tables.push_back({t});
    made.pieces.push_back({{{t}, 0, job.tables[t].size()}, numbers(job.tables[t].size())});
  }
  return made;
}

inline pull_request whole_pull(const job_spec& job, std::uint64_t batch = 0) {
  pull_request made;
  made.step.batch = {batch};
  for (std::uint32_t t = 0; t < job.tables.size(); ++t)
    made.ranges.push_back({{t}, 0, job.tables[t].size()});
  return made;
}

/// Returns a server's pull reply to `asked`.
inline pull_reply answer_to(const pull_request& asked, std::uint64_t version) {
  pull_reply made{version, {}};
  for (const auto& where : asked.ranges)
    made.pieces.push_back({where, numbers(where.count)});
  return made;
}

inline std::string text_of(const router_effect& effect) {
  struct {
    std::string operator()(const send_part_effect& x) const {
      const char* const kind = !x.what.pull ? "push " : x.what.push ? "push and pull " : "pull ";
      return kind + std::to_string(x.part.value) + " to " + std::to_string(x.to.shard.value)
             + " attempt " + std::to_string(x.attempt);
    }
    std::string operator()(const answered_effect& x) const {
      const auto number = std::to_string(x.request.value);
      std::string line;
      if (const auto& push_reply = x.answer.pushed)
        line = "pushed " + number + " version " + std::to_string(push_reply->version)
               + (push_reply->duplicate ? " duplicate" : "");
      if (const auto& values = x.answer.pulled) {
        std::uint64_t count = 0;
        for (const auto& one : values->pieces)
          count += one.where.count;
        line += (line.empty() ? "pulled " : ", pulled ") + number + " version "
                + std::to_string(values->version) + " elements " + std::to_string(count);
      }
      return line;
    }
    std::string operator()(const failed_effect& x) const {
      return "failed " + std::to_string(x.request.value) + " " + to_string(x.why.code);
    }
  } const write;
  return std::visit(write, effect);
}

using texts = std::vector<std::string>;

/// Every call returns its effects, one line each; `sent` keeps the requests to servers.
struct router_fixture {
  explicit router_fixture(bool with_view = true) : decide(job) {
    if (with_view)
      set_view(routed_view(job));
  }

  texts push(std::uint64_t token) { return push(token, whole_push(job)); }
  texts push(std::uint64_t token, push_request what) { return ask(token, {std::move(what), {}}); }
  texts pull(std::uint64_t token) { return pull(token, whole_pull(job)); }
  texts pull(std::uint64_t token, pull_request what) { return ask(token, {{}, std::move(what)}); }
  texts ask(std::uint64_t token, request what) {
    return run([&](auto& effects) { decide.ask({token}, std::move(what), now, effects); });
  }
  texts set_view(const view& what) {
    return run([&](auto& effects) { decide.set_view(what, now, effects); });
  }
  texts answered(std::uint64_t part, reply answer) {
    return run([&](auto& effects) { decide.answered({part}, std::move(answer), now, effects); });
  }
  texts pushed(std::uint64_t part, push_reply answer = {}) { return answered(part, {answer, {}}); }
  /// Answers the part with the requested ranges.
  texts pulled(std::uint64_t part, std::uint64_t version = 0) {
    return answered(part, {{}, answer_to(*last_of(part).what.pull, version)});
  }
  texts failed(std::uint64_t part, errc code, std::uint64_t attempt = 1) {
    return run([&](auto& effects) { decide.failed({part}, attempt, {code, "why"}, now, effects); });
  }
  texts tick(std::chrono::milliseconds later) {
    now += later;
    return run([&](auto& effects) { decide.tick(now, effects); });
  }

  const send_part_effect& last_of(std::uint64_t part) const {
    for (auto x = sent.rbegin(); x != sent.rend(); ++x)
      if (x->part.value == part)
        return *x;
    throw std::runtime_error{"never sent"};
  }

  template <class Event>
  texts run(Event event) {
    router_effects effects;
    event(effects);
    texts said;
    for (const auto& x : effects) {
      said.push_back(text_of(x));
      if (const auto* part = std::get_if<send_part_effect>(&x)) {
        CHECK(part->what.shard == part->to.shard);
        sent.push_back(*part);
      }
      if (const auto* whole = std::get_if<answered_effect>(&x); whole && whole->answer.pulled)
        last_values = *whole->answer.pulled;
    }
    return said;
  }

  job_spec job = routed_job();
  router decide;
  time_point now{0};
  std::vector<send_part_effect> sent;
  pull_reply last_values;
};

} // namespace troupe::test
