// Decides when a pull may be answered. The rest of `shard` is in shard.cpp.
#include "actors/protocol/server/shard.hpp"

#include "actors/protocol/mutation.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace troupe {

void shard::pull(request_token token, const pull_terms& what, time_point now,
                 shard_effects& effects) {
  assert(!applying_);
  if (auto why = rejection_of(what)) {
    effects.push_back(refuse_effect{token, *std::move(why)});
    return;
  }
  ++counters_.pulls;
  if (what.latest) {
    effects.push_back(answer_effect{token, version_, {}});
    return;
  }
  lead();
  hear(what.step, what.step.clock);
  for (const step_header& other : what.others)
    hear(other, other.clock);
  answer_or_keep(wait_for(token, what, now), effects);
}

void shard::read(request_token token, const pull_terms& what, time_point now,
                 shard_effects& effects) {
  assert(!applying_);
  const auto is_ssp = [&](table_id table) {
    return job_.tables[table.value].sync.mode == consistency_mode::ssp;
  };
  auto why = rejection_of(what);
  if (!why && !what.latest && std::ranges::any_of(what.tables, is_ssp))
    why = failure{errc::not_ready, "only the replica that leads answers pulls of ssp tables"};
  if (why) {
    effects.push_back(refuse_effect{token, *std::move(why)});
    return;
  }
  ++counters_.pulls;
  if (what.latest)
    effects.push_back(answer_effect{token, version_, {}});
  else
    answer_or_keep(wait_for(token, what, now), effects);
}

shard::waiting_pull shard::wait_for(request_token token, const pull_terms& what,
                                    time_point now) const {
  const step_header& step = what.step;
  waiting_pull pull{.token = token,
                    .responders = {step},
                    .bsp_clock = {},
                    .floor = {},
                    .version_min = what.version_min,
                    .bsp_tables = {},
                    .deadline = now + options_.pull_patience};
  pull.responders.insert(pull.responders.end(), what.others.begin(), what.others.end());
  for (const table_id table : what.tables) {
    const consistency& sync = job_.tables[table.value].sync;
    if (sync.mode == consistency_mode::bsp) {
      pull.bsp_clock = bsp_clock(job_, step.batch);
      pull.bsp_tables.push_back(table);
    } else if (sync.mode == consistency_mode::ssp) {
      const std::uint64_t floor =
        step.clock - std::min<std::uint64_t>(step.clock, sync.staleness_clocks);
      pull.floor = std::max(pull.floor.value_or(0), floor);
    }
  }
  return pull;
}

void shard::answer_or_keep(waiting_pull pull, shard_effects& effects) {
  const request_token token = pull.token;
  waiting_.push_back(std::move(pull));
  go_on(effects);
  if (!waiting_.empty() && waiting_.back().token == token)
    ++counters_.waiting_pulls;
}

bool shard::answerable(const waiting_pull& pull) const {
  return (!pull.bsp_clock || slots_.clocks() >= *pull.bsp_clock)
         && (!pull.floor || !clocks_.laggard(*pull.floor) || mutated(mutation::answered_too_soon))
         && version_ >= pull.version_min;
}

void shard::answer(const waiting_pull& pull, shard_effects& effects) {
  const bool one_behind = pull.bsp_clock && slots_.clocks() == *pull.bsp_clock + 1;
  effects.push_back(
    answer_effect{pull.token, version_, one_behind ? pull.bsp_tables : std::vector<table_id>{}});
  if (pull.floor)
    pull_clock_max_ = std::max(pull_clock_max_, pull.responders.front().clock);
}

std::string shard::awaited(const waiting_pull& pull) const {
  if (pull.bsp_clock && slots_.clocks() < *pull.bsp_clock)
    return "waiting for batch " + std::to_string(slots_.first_missing().value) + " of clock "
           + std::to_string(slots_.clocks());
  const auto slowest = pull.floor ? clocks_.laggard(*pull.floor) : std::nullopt;
  if (!slowest)
    return "waiting for version " + std::to_string(pull.version_min) + ", this is "
           + std::to_string(version_);
  const std::string name = "waiting for worker " + std::to_string(slowest->worker.value);
  return slowest->known ? name + " at clock " + std::to_string(slowest->clock)
                        : name + ", not heard of yet";
}

void shard::tick(time_point now, shard_effects& effects) {
  std::vector<waiting_pull> stay;
  for (waiting_pull& pull : waiting_) {
    if (pull.deadline <= now)
      effects.push_back(refuse_effect{pull.token, {errc::not_yet, awaited(pull)}});
    else
      stay.push_back(std::move(pull));
  }
  waiting_ = std::move(stay);
}

} // namespace troupe
