#include "actors/store/shard.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <limits>

namespace troupe {

namespace {

std::uint64_t minus_or_zero(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; }

std::uint64_t successor(std::uint64_t clock) {
  return clock == std::numeric_limits<std::uint64_t>::max() ? clock : clock + 1;
}

std::vector<table_id> tables_with(const job_spec& job, consistency_mode mode) {
  std::vector<table_id> tables;
  for (std::uint32_t i = 0; i < job.tables.size(); ++i)
    if (job.tables[i].sync.mode == mode)
      tables.push_back({i});
  return tables;
}

/// Clocks that all partitions have applied to all bsp tables.
std::uint64_t clocks_applied(const job_spec& job, const std::vector<table_id>& bsp_tables,
                             const partition_marks& marks) {
  if (bsp_tables.empty())
    return 0;
  const batch_id floor = marks.floor(bsp_tables, {job.batches()});
  return floor.value < job.batches() ? bsp_clock(job, floor) : bsp_clock_count(job);
}

bool known_tables(const job_spec& job, const std::vector<table_id>& tables) {
  return std::all_of(tables.begin(), tables.end(),
                     [&](table_id table) { return table.value < job.tables.size(); });
}

} // namespace

shard::shard(const job_spec& job, generation_id generation,
             const std::vector<shard_partition>& partitions, shard_options options)
    : job_(job), generation_(generation), options_(options),
      bsp_tables_(tables_with(job, consistency_mode::bsp)), marks_(partitions, job.tables.size()),
      version_(marks_.version_max()), slots_(job, clocks_applied(job, bsp_tables_, marks_)) {
  std::optional<std::uint32_t> smallest;
  for (const table_id table : tables_with(job, consistency_mode::ssp)) {
    const std::uint32_t staleness = job.tables[table.value].sync.staleness_clocks;
    smallest = std::min(smallest.value_or(staleness), staleness);
  }
  staleness_min_ = smallest.value_or(0);
}

// -- workers --

void shard::set_workers(const std::vector<clock_entry>& workers, shard_effects& effects) {
  assert(!open_);
  clocks_.list(workers, minus_or_zero(pull_clock_max_, staleness_min_));
  std::vector<waiting_pull> stay;
  for (waiting_pull& pull : waiting_) {
    if (auto why = clocks_.objection(pull.worker, pull.incarnation))
      effects.push_back(refuse_effect{pull.token, *std::move(why)});
    else
      stay.push_back(std::move(pull));
  }
  waiting_ = std::move(stay);
  go_on(effects);
}

std::optional<failure> shard::objection(const step_header& step) const {
  if (step.generation != generation_) {
    const bool is_past = step.generation < generation_;
    return failure{is_past ? errc::rolled_back : errc::not_ready,
                   std::string("the request belongs to a ") + (is_past ? "past" : "coming")
                     + " generation " + std::to_string(step.generation.value) + ", served is "
                     + std::to_string(generation_.value)};
  }
  if (step.batch.value >= job_.batches())
    return failure{errc::malformed,
                   "batch beyond the end of the job: " + std::to_string(step.batch.value)};
  return clocks_.objection(step.worker, step.incarnation);
}

// -- pushes --

bool shard::is_bsp(table_id table) const {
  return job_.tables[table.value].sync.mode == consistency_mode::bsp;
}

std::optional<failure> shard::malformed_push(const std::vector<table_id>& tables) const {
  if (!known_tables(job_, tables))
    return failure{errc::malformed, "push names a table that the job does not have"};
  std::vector<bool> seen(job_.tables.size());
  std::size_t bsp_count = 0;
  for (const table_id table : tables) {
    if (seen[table.value])
      return failure{errc::malformed,
                     "push lists a table twice: '" + job_.tables[table.value].name + "'"};
    seen[table.value] = true;
    bsp_count += is_bsp(table) ? 1 : 0;
  }
  if (bsp_count != 0 && bsp_count != bsp_tables_.size())
    return failure{errc::malformed, "push names some bsp tables and leaves out others"};
  return std::nullopt;
}

void shard::push(request_token token, const step_header& step, const std::vector<table_id>& tables,
                 std::uint64_t base_version, shard_effects& effects) {
  assert(!open_);
  auto why = malformed_push(tables);
  if (!why)
    why = objection(step);
  if (why) {
    effects.push_back(refuse_effect{token, *std::move(why)});
    return;
  }
  arrival now{token,
              step,
              {},
              false,
              minus_or_zero(version_, base_version),
              minus_or_zero(step.clock, clocks_.min().value_or(step.clock))};
  for (const table_id table : tables) {
    if (is_bsp(table))
      now.is_slot = !slots_.applied(step.batch);
    else if (!marks_.contains(table, step.batch))
      now.tables.push_back(table);
  }
  if (now.is_slot && slots_.too_far(step.batch)) {
    effects.push_back(refuse_effect{
      token, {errc::not_ready, "batch of a clock far ahead: " + std::to_string(step.batch.value)}});
    return;
  }
  if (now.tables.empty()) {
    keep_or_acknowledge(token, step, now.is_slot, false, effects);
    go_on(effects);
    return;
  }
  std::sort(now.tables.begin(), now.tables.end());
  effects.push_back(apply_effect{
    {token}, now.tables, marks_.pairs(now.tables, step.batch), now.staleness_versions});
  open_ = std::move(now);
}

void shard::applied(shard_effects& effects) {
  assert(open_);
  const auto done = *std::move(open_);
  open_.reset();
  ++version_;
  std::visit([&](const auto& step) { finish(step, effects); }, done);
  go_on(effects);
}

void shard::finish(const arrival& done, shard_effects& effects) {
  marks_.insert(done.tables, done.step.batch);
  ++counters_.applied;
  counters_.staleness_versions.add(done.staleness_versions);
  counters_.staleness_clocks.add(done.staleness_clocks);
  keep_or_acknowledge(done.token, done.step, done.is_slot, true, effects);
}

void shard::finish(const open_clock&, shard_effects& effects) {
  const std::vector<bsp_slot> slots = slots_.next();
  slots_.drop_next(true);
  for (const bsp_slot& slot : slots) {
    marks_.insert(bsp_tables_, slot.batch);
    if (!slot.counted) {
      // A bsp gradient is computed from the very values that it is applied to.
      ++counters_.applied;
      counters_.staleness_versions.add(0);
      counters_.staleness_clocks.add(0);
    }
    for (std::size_t i = 0; i < slot.waiting.size(); ++i)
      acknowledge(slot.waiting[i], i > 0, effects);
  }
}

void shard::discarded(failure why, shard_effects& effects) {
  assert(open_);
  const auto failed = *std::move(open_);
  open_.reset();
  std::vector<request_token> tokens;
  if (const auto* push = std::get_if<arrival>(&failed)) {
    tokens.push_back(push->token);
  } else {
    for (const bsp_slot& slot : slots_.next())
      tokens.insert(tokens.end(), slot.waiting.begin(), slot.waiting.end());
    slots_.drop_next(false);
  }
  for (const request_token token : tokens) {
    ++counters_.refused;
    effects.push_back(refuse_effect{token, why});
  }
}

void shard::keep_or_acknowledge(request_token token, const step_header& step, bool is_slot,
                                bool changed, shard_effects& effects) {
  if (is_slot)
    slots_.keep(step.batch, token, changed);
  else
    acknowledge(token, !changed, effects);
  clocks_.advance(step.worker, successor(step.clock));
}

void shard::acknowledge(request_token token, bool duplicate, shard_effects& effects) {
  counters_.duplicates += duplicate ? 1 : 0;
  effects.push_back(acknowledge_effect{token, {version_, duplicate}});
}

// -- pulls --

void shard::pull(request_token token, const step_header& step, bool latest,
                 const std::vector<table_id>& tables, time_point now, shard_effects& effects) {
  assert(!open_);
  std::optional<failure> why;
  if (!known_tables(job_, tables))
    why = failure{errc::malformed, "pull names a table that the job does not have"};
  else if (!latest)
    why = objection(step);
  if (why) {
    effects.push_back(refuse_effect{token, *std::move(why)});
    return;
  }
  ++counters_.pulls;
  if (latest) {
    effects.push_back(answer_effect{token, version_, {}});
    return;
  }
  waiting_pull pull{token,
                    step.worker,
                    step.incarnation,
                    step.clock,
                    std::nullopt,
                    std::nullopt,
                    {},
                    now + options_.pull_patience};
  for (const table_id table : tables) {
    const consistency& sync = job_.tables[table.value].sync;
    if (sync.mode == consistency_mode::bsp) {
      pull.bsp_clock = bsp_clock(job_, step.batch);
      pull.bsp_tables.push_back(table);
    } else if (sync.mode == consistency_mode::ssp) {
      const std::uint64_t floor = minus_or_zero(step.clock, sync.staleness_clocks);
      pull.floor = std::max(pull.floor.value_or(0), floor);
    }
  }
  clocks_.advance(step.worker, step.clock);
  waiting_.push_back(std::move(pull));
  go_on(effects);
  if (!waiting_.empty() && waiting_.back().token == token)
    ++counters_.waiting_pulls;
}

bool shard::answerable(const waiting_pull& pull) const {
  return (!pull.bsp_clock || slots_.clocks() >= *pull.bsp_clock)
         && (!pull.floor || !clocks_.laggard(*pull.floor));
}

void shard::answer(const waiting_pull& pull, shard_effects& effects) {
  const bool one_behind = pull.bsp_clock && slots_.clocks() == *pull.bsp_clock + 1;
  effects.push_back(
    answer_effect{pull.token, version_, one_behind ? pull.bsp_tables : std::vector<table_id>{}});
  if (pull.floor)
    pull_clock_max_ = std::max(pull_clock_max_, pull.clock);
}

std::string shard::awaited(const waiting_pull& pull) const {
  if (pull.bsp_clock && slots_.clocks() < *pull.bsp_clock)
    return "waiting for batch " + std::to_string(slots_.first_missing().value) + " of clock "
           + std::to_string(slots_.clocks());
  const auto slowest = clocks_.laggard(*pull.floor);
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

// -- cuts, and what events make possible --

void shard::request_cut(std::uint64_t checkpoint, std::uint64_t clock, shard_effects& effects) {
  assert(!open_);
  // A clock past the last one would never come.
  cut_ = wanted_cut{checkpoint, bsp_tables_.empty() ? 0 : std::min(clock, bsp_clock_count(job_))};
  go_on(effects);
}

void shard::go_on(shard_effects& effects) {
  std::vector<waiting_pull> stay;
  for (waiting_pull& pull : waiting_) {
    if (answerable(pull))
      answer(pull, effects);
    else
      stay.push_back(std::move(pull));
  }
  waiting_ = std::move(stay);
  if (cut_ && slots_.clocks() >= cut_->clock) {
    effects.push_back(cut_effect{cut_->checkpoint});
    cut_.reset();
  }
  if (!bsp_tables_.empty() && slots_.complete())
    apply_next_clock(effects);
}

void shard::apply_next_clock(shard_effects& effects) {
  const std::vector<bsp_slot> slots = slots_.next();
  apply_effect step{{}, bsp_tables_, marks_.pairs(bsp_tables_, slots.front().batch), 0};
  for (const bsp_slot& slot : slots)
    step.pushes.push_back(slot.source);
  effects.push_back(std::move(step));
  open_ = open_clock{};
}

bool shard::holds(request_token token) const {
  const auto* step = open_ ? std::get_if<arrival>(&*open_) : nullptr;
  return (step != nullptr && step->token == token) || slots_.holds(token);
}

// -- marks --

batch_set shard::marks() const { return marks_.everywhere({job_.batches()}); }

std::vector<shard_partition> shard::partitions() const { return marks_.partitions(version_); }

} // namespace troupe
