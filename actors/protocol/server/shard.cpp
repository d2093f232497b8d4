#include "actors/protocol/server/shard.hpp"

#include "actors/protocol/mutation.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <limits>
#include <utility>

namespace troupe {

namespace {

std::uint64_t minus_or_zero(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; }

std::uint64_t successor(std::uint64_t clock) {
  return clock == std::numeric_limits<std::uint64_t>::max() ? clock : clock + 1;
}

/// Returns the first clock that a worker has not ended with this push and its earlier ones.
std::uint64_t clock_after(const step_header& step) {
  const bool ends_clock = !step.is_partial || mutated(mutation::clock_ended_by_first_part);
  return ends_clock ? successor(step.clock) : step.clock;
}

std::vector<table_id> clock_tables_of(const job_spec& job) {
  std::vector<table_id> tables;
  for (std::uint32_t i = 0; i < job.tables.size(); ++i)
    if (job.tables[i].sync.traits().clock_updates)
      tables.push_back({i});
  return tables;
}

/// Returns the number of clocks that all partitions have applied to all tables with clocks.
std::uint64_t clocks_applied(const job_spec& job, const std::vector<table_id>& clock_tables,
                             const applied_batches& applied) {
  if (clock_tables.empty())
    return 0;
  const batch_id floor = applied.floor(clock_tables, {job.batches()});
  return floor.value < job.batches() ? bsp_clock(job, floor) : bsp_clock_count(job);
}

bool known_tables(const job_spec& job, const std::vector<table_id>& tables) {
  return std::all_of(tables.begin(), tables.end(),
                     [&](table_id table) { return table.value < job.tables.size(); });
}

bool has_all(const std::vector<step_header>& steps, const std::vector<step_header>& wanted) {
  return std::ranges::all_of(wanted, [&](const step_header& x) {
    return std::ranges::find(steps, x.batch, &step_header::batch) != steps.end();
  });
}

/// Returns whether two steps have the same id of this kind.
template <class Id>
bool twice(const std::vector<step_header>& steps, Id step_header::*which) {
  std::vector<Id> all;
  for (const step_header& step : steps)
    all.push_back(step.*which);
  std::ranges::sort(all);
  return std::ranges::adjacent_find(all) != all.end();
}

} // namespace

shard::shard(const job_spec& job, generation_id generation,
             const std::vector<shard_partition>& partitions, shard_options options)
    : job_(job), generation_(generation), options_(options), clock_tables_(clock_tables_of(job)),
      least_lead_(least_lead(job)), applied_(partitions, job.tables.size()),
      version_(applied_.version_max()), slots_(job, clocks_applied(job, clock_tables_, applied_)) {}

// -- workers --

void shard::set_workers(const std::vector<clock_entry>& workers, shard_effects& effects) {
  assert(!applying_);
  clocks_.list(workers, leads_ ? std::optional{promise()} : std::nullopt);
  std::vector<waiting_pull> stay;
  for (waiting_pull& pull : waiting_) {
    auto why = clocks_.rejection_of(pull.readers.front().worker, pull.readers.front().incarnation);
    if (why && std::ranges::all_of(pull.readers, [&](const step_header& x) {
          return clocks_.rejection_of(x.worker, x.incarnation).has_value();
        }))
      effects.push_back(refuse_effect{pull.token, *std::move(why)});
    else
      stay.push_back(std::move(pull));
  }
  waiting_ = std::move(stay);
  go_on(effects);
}

/// Returns the least clock at which a worker can start now without breaking invariant (2).
std::uint64_t shard::promise() const {
  return least_lead_ ? minus_or_zero(pull_clock_max_, *least_lead_) : 0;
}

void shard::lead() {
  if (!std::exchange(leads_, true))
    clocks_.promise(promise());
}

std::optional<failure> shard::rejection_of(const step_header& step) const {
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
  return clocks_.rejection_of(step.worker, step.incarnation);
}

/// Returns the error of a push. A sum with some refused batches is not applicable, because it must
/// not wait for a worker that may never be listed again.
std::optional<failure> shard::rejection_of(const std::vector<step_header>& steps) const {
  std::optional<failure> first;
  std::size_t refused = 0;
  for (const step_header& step : steps)
    if (auto why = rejection_of(step); why && ++refused == 1)
      first = std::move(why);
  if (refused == 0 || refused == steps.size())
    return first;
  return failure{errc::sum_not_applicable,
                 "of the sum's batches one would be refused: " + first->text};
}

std::optional<failure> shard::rejection_of(const pull_terms& what) const {
  if (!known_tables(job_, what.tables))
    return failure{errc::malformed, "pull names a table that the job does not have"};
  if (what.latest)
    return std::nullopt;
  auto why = rejection_of(what.step);
  const bool others_may =
    std::ranges::any_of(what.others, [&](const step_header& x) { return !rejection_of(x); });
  return others_may ? std::nullopt : why;
}

// -- pushes --

bool shard::takes_clocks(table_id table) const {
  return job_.tables[table.value].sync.traits().clock_updates;
}

std::optional<failure> shard::malformed_push(const std::vector<step_header>& steps,
                                             const std::vector<table_id>& tables) const {
  if (!known_tables(job_, tables))
    return failure{errc::malformed, "push names a table that the job does not have"};
  std::vector<bool> seen(job_.tables.size());
  std::size_t clock_count = 0;
  for (const table_id table : tables) {
    if (seen[table.value])
      return failure{errc::malformed,
                     "push lists a table twice: '" + job_.tables[table.value].name + "'"};
    seen[table.value] = true;
    clock_count += takes_clocks(table) ? 1 : 0;
  }
  if (clock_count != 0 && clock_count != clock_tables_.size())
    return failure{errc::malformed, "push names some bsp tables and leaves out others"};
  if (clock_count != 0 && std::ranges::any_of(steps, &step_header::is_partial))
    return failure{errc::malformed, "a partial push names a bsp table"};
  if (twice(steps, &step_header::batch))
    return failure{errc::malformed, "push lists a batch twice"};
  if (twice(steps, &step_header::worker)) // Bounds the batches of a sum.
    return failure{errc::malformed, "push lists a worker twice"};
  return std::nullopt;
}

std::vector<table_id> shard::missing(const std::vector<table_id>& tables, batch_id batch) const {
  std::vector<table_id> found;
  for (const table_id table : tables)
    if (!takes_clocks(table)
        && (!applied_.contains(table, batch) || mutated(mutation::applied_not_looked_at)))
      found.push_back(table);
  std::sort(found.begin(), found.end());
  return found;
}

/// Returns whether the same partitions lack each of these batches.
bool shard::equally_missing(const std::vector<table_id>& tables,
                            const std::vector<step_header>& steps) const {
  const auto lacking = [&](const step_header& step) {
    return std::pair{missing(tables, step.batch), applied_.pairs(tables, step.batch)};
  };
  return steps.size() == 1 || mutated(mutation::sum_of_marked_taken)
         || std::ranges::all_of(steps, [&, first = lacking(steps.front())](const auto& step) {
              return lacking(step) == first;
            });
}

void shard::push(request_token token, const std::vector<step_header>& steps,
                 const std::vector<table_id>& tables, std::uint64_t base_version,
                 shard_effects& effects) {
  assert(!applying_ && !steps.empty());
  auto why = malformed_push(steps, tables);
  if (!why)
    why = rejection_of(steps);
  if (!why && steps.size() > 1
      && std::ranges::any_of(tables, [&](auto x) { return takes_clocks(x); }))
    why = failure{errc::sum_not_applicable, "slots of a bsp clock come one by one"};
  if (!why && steps.size() > 1 && std::ranges::any_of(steps, &step_header::is_partial))
    why = failure{errc::sum_not_applicable, "partial pushes come one by one"};
  if (!why && !equally_missing(tables, steps))
    why = failure{errc::sum_not_applicable, "some batches of the sum have been applied"};
  if (why) {
    effects.push_back(refuse_effect{token, *std::move(why)});
    return;
  }
  lead();
  const batch_id batch = steps.front().batch;
  waiting_push now{token, steps};
  now.is_slot =
    std::ranges::any_of(tables, [&](auto x) { return takes_clocks(x) && !slots_.applied(batch); });
  if (now.is_slot && slots_.too_far(batch)) {
    effects.push_back(refuse_effect{
      token, {errc::not_ready, "batch of a clock far ahead: " + std::to_string(batch.value)}});
    return;
  }
  auto lacking = missing(tables, batch);
  if (!lacking.empty())
    return propose_or_wait(std::move(now), std::move(lacking), base_version, effects);
  keep_or_acknowledge(now, effects);
  go_on(effects);
}

void shard::propose_or_wait(waiting_push push, std::vector<table_id> tables,
                            std::uint64_t base_version, shard_effects& effects) {
  pending_entry* const with = pending_with(push.steps, tables);
  if (with == nullptr) {
    push.proposed = true;
    const auto newest = std::ranges::max(push.steps, {}, &step_header::clock).clock;
    const std::uint64_t slowest = clocks_.min().value_or(newest);
    propose({{push.steps, std::move(tables), base_version}, {push}, minus_or_zero(newest, slowest)},
            {push.token}, effects);
  } else if (has_all(with->what.steps, push.steps)
             && std::ranges::includes(with->what.tables, tables)) {
    with->waiting.push_back(std::move(push));
  } else {
    effects.push_back(refuse_effect{
      push.token,
      {errc::not_ready, "some tables have batch " + std::to_string(push.steps.front().batch.value)
                          + (push.steps.size() > 1 ? " or others" : "") + " pending"}});
  }
}

/// Returns the first pending entry that brings some of these batches to some of these tables, none
/// of them bsp.
shard::pending_entry* shard::pending_with(const std::vector<step_header>& steps,
                                          const std::vector<table_id>& tables) {
  for (pending_entry& entry : pending_)
    if (std::ranges::any_of(steps, [&](const auto& x) { return has_all(entry.what.steps, {x}); })
        && std::find_first_of(tables.begin(), tables.end(), entry.what.tables.begin(),
                              entry.what.tables.end())
             != tables.end())
      return &entry;
  return nullptr;
}

void shard::propose(pending_entry entry, std::vector<request_token> pushes,
                    shard_effects& effects) {
  effects.push_back(propose_effect{std::move(pushes), entry.what});
  pending_.push_back(std::move(entry));
}

void shard::propose_next_clock(shard_effects& effects) {
  pending_entry clock{{{}, clock_tables_}, {}};
  std::vector<request_token> pushes;
  assert(std::ranges::none_of(pending_, [&](const auto& x) { return is_clock(x.what); }));
  for (const bsp_slot& slot : slots_.next()) {
    clock.what.steps.push_back(slot.step);
    pushes.push_back(*slot.source);
  }
  assert(is_whole_clock(clock.what));
  slots_.entered();
  propose(std::move(clock), std::move(pushes), effects);
}

/// Returns whether the entry has all slots of the next clock, in slot order.
bool shard::is_whole_clock(const entry_header& entry) const {
  auto next = bsp_first(job_, slots_.clocks());
  for (const step_header& step : entry.steps)
    if (step.batch.value != next.value++)
      return false;
  return next == bsp_end(job_, slots_.clocks());
}

// -- pulls --

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
  const auto only_here = [&](table_id table) {
    return job_.tables[table.value].sync.traits().bounded_lead;
  };
  auto why = rejection_of(what);
  if (!why && !what.latest && std::ranges::any_of(what.tables, only_here))
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
                    .readers = {step},
                    .bsp_clock = {},
                    .floor = {},
                    .version_min = what.version_min,
                    .clock_tables = {},
                    .deadline = now + options_.pull_patience};
  pull.readers.insert(pull.readers.end(), what.others.begin(), what.others.end());
  for (const table_id table : what.tables) {
    const consistency& sync = job_.tables[table.value].sync;
    if (sync.traits().clock_updates) {
      pull.bsp_clock = bsp_clock(job_, step.batch);
      pull.clock_tables.push_back(table);
    } else if (sync.traits().bounded_lead) {
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
  assert(!pull.floor || !clocks_.laggard(*pull.floor));
  const bool one_behind = pull.bsp_clock && slots_.clocks() == *pull.bsp_clock + 1;
  effects.push_back(
    answer_effect{pull.token, version_, one_behind ? pull.clock_tables : std::vector<table_id>{}});
  if (pull.floor)
    pull_clock_max_ = std::max(pull_clock_max_, pull.readers.front().clock);
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

// -- the log --

void shard::append(entry_header entry) {
  assert(!applying_ && slots_.empty());
  // The worker that pushes clock c had its pull of c answered by the leading replica and, once a
  // push that ends c is committed, may have had its pull of c + 1 answered. If this replica leads
  // next, its promises to new workers must hold for those readers too.
  for (const step_header& step : entry.steps)
    pull_clock_max_ = std::max(pull_clock_max_, clock_after(step));
  leads_ = false;
  if (is_clock(entry))
    slots_.entered();
  pending_.push_back({std::move(entry), {}});
}

void shard::commit(shard_effects& effects) {
  assert(!applying_ && !pending_.empty());
  applying_ = true;
  const entry_header& entry = pending_.front().what;
  // A bsp gradient is computed from the very values that it is applied to.
  const std::uint64_t staleness = is_clock(entry) ? 0 : minus_or_zero(version_, entry.base_version);
  effects.push_back(apply_effect{entry.tables,
                                 applied_.pairs(entry.tables, entry.steps.front().batch), staleness,
                                 is_clock(entry) ? entry.steps.size() : 1});
}

shard::pending_entry shard::take_committed() {
  assert(applying_);
  applying_ = false;
  pending_entry oldest = std::move(pending_.front());
  pending_.pop_front();
  if (cut_ && cut_->before > 0)
    --cut_->before;
  return oldest;
}

void shard::applied(shard_effects& effects) {
  const pending_entry done = take_committed();
  const bool is_sum = !is_clock(done.what);
  for (const step_header& step : done.what.steps) {
    if (is_sum && step != done.what.steps.front() && mutated(mutation::sum_marked_as_one))
      continue;
    assert(std::ranges::none_of(
      done.what.tables, [&](table_id table) { return applied_.contains(table, step.batch); }));
    applied_.insert(done.what.tables, step.batch);
    hear(step, clock_after(step));
  }
  ++version_;
  assert(!is_clock(done.what) || is_whole_clock(done.what));
  if (is_clock(done.what))
    finish_clock(effects);
  else
    finish_arrival(done, effects);
  go_on(effects);
}

void shard::finish_arrival(const pending_entry& done, shard_effects& effects) {
  for (const waiting_push& push : done.waiting) {
    for (std::size_t i = 0; push.proposed && i < push.steps.size(); ++i)
      count_applied(minus_or_zero(version_ - 1, done.what.base_version), done.staleness_clocks);
    keep_or_acknowledge(push, effects);
  }
}

void shard::finish_clock(shard_effects& effects) {
  const std::vector<bsp_slot> slots = slots_.next();
  slots_.drop_next(true);
  for (const bsp_slot& slot : slots) {
    if (slot.source && !slot.counted)
      count_applied(0, 0);
    for (const request_token token : slot.waiting)
      acknowledge(token, token != slot.source, effects);
  }
}

void shard::discarded(failure why, shard_effects& effects) {
  const pending_entry failed = take_committed();
  std::vector<request_token> tokens;
  for (const waiting_push& push : failed.waiting) {
    tokens.push_back(push.token);
    for (const step_header& step : push.steps)
      clocks_.settle(step.worker, step.incarnation, first_pending(step));
  }
  for (const step_header& step : failed.what.steps)
    clocks_.settle(step.worker, step.incarnation, first_pending(step));
  if (is_clock(failed.what)) {
    for (const bsp_slot& slot : slots_.next())
      tokens.insert(tokens.end(), slot.waiting.begin(), slot.waiting.end());
    slots_.drop_next(false);
  }
  for (const request_token token : tokens) {
    ++counters_.refused;
    effects.push_back(refuse_effect{token, why});
  }
  go_on(effects);
}

void shard::follow(std::uint64_t pull_clock_max) {
  leads_ = false;
  pull_clock_max_ = pull_clock_max;
}

void shard::step_down(shard_effects& effects) {
  assert(!applying_);
  leads_ = false;
  cut_.reset();
  const auto refuse = [&](request_token token) {
    effects.push_back(refuse_effect{token, {errc::not_ready, "this replica does not lead"}});
  };
  for (pending_entry& entry : pending_) {
    for (const waiting_push& push : entry.waiting)
      refuse(push.token);
    entry.waiting.clear();
  }
  clocks_.forget_pushed();
  for (const bsp_slot& slot : slots_.drop_all())
    for (const request_token token : slot.waiting)
      refuse(token);
  for (const waiting_pull& pull : waiting_)
    refuse(pull.token);
  waiting_.clear();
}

void shard::truncate(shard_effects& effects) {
  step_down(effects);
  pending_.clear();
  slots_.truncated();
}

/// Keeps the bsp slot of a push, or acknowledges the push. Its asp and ssp tables have the batch.
void shard::keep_or_acknowledge(const waiting_push& push, shard_effects& effects) {
  if (push.is_slot && !slots_.applied(push.steps.front().batch))
    slots_.keep(push.steps.front(), push.token, push.proposed);
  else
    acknowledge(push.token, !push.proposed, effects);
  for (const step_header& step : push.steps)
    hear(step, clock_after(step));
}

/// Advances the clock of the worker of a request or an entry.
void shard::hear(const step_header& step, std::uint64_t pushed_below) {
  clocks_.advance(step.worker, step.incarnation, pushed_below, first_pending(step));
}

/// Returns the smallest clock of this worker's pushes whose asp and ssp tables are pending.
std::uint64_t shard::first_pending(const step_header& of) const {
  std::uint64_t first = std::numeric_limits<std::uint64_t>::max();
  const auto look = [&](const std::vector<step_header>& steps) {
    for (const step_header& step : steps)
      if (step.worker == of.worker && step.incarnation == of.incarnation)
        first = std::min(first, step.clock);
  };
  for (const pending_entry& entry : pending_) {
    if (is_clock(entry.what))
      continue;
    look(entry.what.steps);
    for (const waiting_push& copy : entry.waiting)
      look(copy.steps);
  }
  return first;
}

void shard::count_applied(std::uint64_t staleness_versions, std::uint64_t staleness_clocks) {
  ++counters_.applied;
  counters_.staleness_versions.add(staleness_versions);
  counters_.staleness_clocks.add(staleness_clocks);
}

void shard::acknowledge(request_token token, bool duplicate, shard_effects& effects) {
  counters_.duplicates += duplicate ? 1 : 0;
  effects.push_back(acknowledge_effect{token, {version_, duplicate}});
}

// -- cuts, and steps that events make possible --

void shard::request_cut(std::uint64_t checkpoint, std::uint64_t clock, shard_effects& effects) {
  assert(!applying_);
  if (clock_tables_.empty())
    cut_ = wanted_cut{checkpoint, 0, pending_.size()};
  else // A clock past the last one would never come.
    cut_ = wanted_cut{checkpoint, std::min(clock, bsp_clock_count(job_)), 0};
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
  if (cut_ && cut_->before == 0 && slots_.clocks() >= cut_->clock) {
    effects.push_back(cut_effect{cut_->checkpoint});
    cut_.reset();
  }
  if (!clock_tables_.empty() && slots_.complete())
    propose_next_clock(effects);
}

bool shard::holds(request_token token) const {
  for (const pending_entry& entry : pending_) {
    const auto slot = std::find_if(entry.waiting.begin(), entry.waiting.end(),
                                   [](const waiting_push& push) { return push.is_slot; });
    if (slot != entry.waiting.end() && slot->token == token)
      return true;
  }
  return slots_.holds(token);
}

std::vector<std::pair<request_token, std::string>> shard::waits() const {
  std::vector<std::pair<request_token, std::string>> all;
  for (std::size_t i = 0; i < pending_.size(); ++i)
    for (const waiting_push& push : pending_[i].waiting)
      all.emplace_back(push.token, "waiting for pending entry " + std::to_string(i + 1) + " of "
                                     + std::to_string(pending_.size()));
  for (const auto& [token, batch] : slots_.waits())
    all.emplace_back(token, "waiting with the slot of batch " + std::to_string(batch.value));
  for (const waiting_pull& pull : waiting_)
    all.emplace_back(pull.token, awaited(pull));
  return all;
}

// -- applied batches --

batch_set shard::batches_applied() const { return applied_.everywhere({job_.batches()}); }

std::vector<shard_partition> shard::partitions() const { return applied_.partitions(version_); }

} // namespace troupe
