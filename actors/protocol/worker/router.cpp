#include "actors/protocol/worker/router.hpp"

#include "actors/protocol/mutation.hpp"

#include <algorithm>
#include <cassert>
#include <functional>
#include <limits>
#include <utility>

namespace troupe {

namespace {

/// Marks attempts at non-head replicas.
constexpr std::uint64_t read_attempts = std::uint64_t{1} << 63;

const range& where_of(const range& x) { return x; }
const range& where_of(const piece& x) { return x.where; }
const packed_piece& where_of(const packed_piece& x) { return x; } // Checked as a whole.
const row_keys& where_of(const row_keys& x) { return x; }
const row_keys& where_of(const row_piece& x) { return x.where; }

bool share_a_worker(const push_request& push, const pull_request& pull) {
  return std::ranges::any_of(push.steps(), [&](const step_header& x) {
    return x.worker == pull.step.worker
           || std::ranges::find(pull.others, x.worker, &step_header::worker) != pull.others.end();
  });
}

/// A replica that sends pull_reply more slowly than this is too busy.
constexpr std::uint64_t bytes_per_ms = 32 << 10;

std::uint64_t bytes_of(const pull_request& what) {
  std::uint64_t floats = 0;
  for (const auto& x : what.ranges)
    floats += x.count;
  for (const auto& x : what.rows)
    floats += x.count * x.width;
  return floats * sizeof(float);
}

} // namespace

router::router(job_spec job, router_options options) : job_(std::move(job)), options_(options) {
  for (const auto& table : job_.tables)
    block_elements_.push_back(troupe::block_elements(table));
  only_heads_answer_ = any_table(job_, &mode_traits::bounded_lead);
  pulls_wait_ = has_waiting_pulls(job_);
}

void router::set_view(const view& now_valid, time_point now, router_effects& effects) {
  if (now_valid.config < view_.config || !fits(now_valid))
    return;
  view_ = now_valid;
  row_split_ = row_split{view_.shard_of};
  for (const auto& entry : view_.chains) {
    auto& known = chains_[entry.shard];
    const bool is_new = known.entry.head != entry.head;
    const bool is_back = entry.serving && (is_new || !known.entry.serving);
    const bool other_readers = known.entry.others != entry.others;
    known.entry = entry;
    for (const auto& [id, part] : known.open)
      if (other_readers && part.at > 0)
        place(known, id, 0, now, effects);
    if (is_back) {
      send_all(known, effects);
      introduce_waiting(known, now, effects);
    } else if (!entry.serving) {
      known.resend_at.reset(); // A view in which it serves will come.
    }
  }
}

// Before the job has begun, a view has no partitions.
bool router::fits(const view& what) const {
  if (what.shard_of.empty())
    return true;
  return what.shard_of.size() == job_.partitions
         && std::all_of(what.shard_of.begin(), what.shard_of.end(), [&](shard_id owner) {
              return std::any_of(what.chains.begin(), what.chains.end(),
                                 [&](const auto& entry) { return entry.shard == owner; });
            });
}

// Checks a reply, because clients copy each piece to the place that it names.
bool router::answers(const pull_reply& answer, const pull_request& asked) const {
  std::uint64_t missing = 0;
  for (const auto& where : asked.ranges)
    missing += where.count;
  const auto covers = [&](const range& x) {
    if (!check(x) || x.count > missing)
      return false;
    missing -= x.count;
    return true;
  };
  return std::ranges::all_of(answer.pieces, covers, &piece::where)
         && std::ranges::all_of(
           answer.packed,
           [&](const packed_piece& x) { return x.how == asked.packed_as && covers(x.where); })
         && (asked.delta || answer.unchanged.empty())
         && std::ranges::all_of(answer.unchanged, covers) && missing == 0
         && std::equal(answer.rows.begin(), answer.rows.end(), asked.rows.begin(), asked.rows.end(),
                       [](const row_piece& x, const row_keys& y) {
                         return x.where.table == y.table && x.where.width == y.width
                                && x.where.count == y.count && (x.values || y.count == 0);
                       });
}

bool router::answers(const reply& answer, const request& asked) const {
  if (asked.push && !answer.pushed)
    return false;
  if (asked.pull && !answer.pulled)
    return asked.push.has_value();
  return !asked.pull || answers(*answer.pulled, *asked.pull);
}

result<void> router::check(const range& where) const {
  if (where.table.value >= job_.tables.size())
    return {errc::shape_mismatch, "the job has no table " + std::to_string(where.table.value)};
  const auto& table = job_.tables[where.table.value];
  if (where.first > table.size() || where.count > table.size() - where.first)
    return {errc::shape_mismatch, "a range ends behind table '" + table.name + "', which has "
                                    + std::to_string(table.size()) + " elements"};
  return {};
}

result<void> router::check(const row_keys& where) const {
  if (where.table.value >= job_.tables.size() || !job_.tables[where.table.value].is_sparse()
      || job_.tables[where.table.value].width != where.width)
    return {errc::shape_mismatch, "the job has no sparse table " + std::to_string(where.table.value)
                                    + " with rows of " + std::to_string(where.width) + " floats"};
  if (where.count > 0 && !where.keys)
    return {errc::shape_mismatch, "rows without keys"};
  if (first_unordered(where.span()) < where.count)
    return {errc::shape_mismatch,
            "keys must ascend: table '" + job_.tables[where.table.value].name + "'"};
  return {};
}

template <class Whole>
result<void> router::check(const std::vector<Whole>& all) const {
  if (view_.shard_of.empty())
    return {errc::not_ready, "no view of the cluster yet"};
  for (const auto& whole : all)
    if (auto valid = check(where_of(whole)); !valid)
      return valid;
  return {};
}

result<void> router::check(const request& what) const {
  auto valid = what.push ? check(what.push->pieces) : result<void>{};
  if (valid && what.push)
    valid = check(what.push->rows);
  if (valid && what.push)
    valid = check(what.push->packed);
  if (valid && what.pull)
    valid = check(what.pull->ranges);
  if (valid && what.pull)
    valid = check(what.pull->rows);
  return valid;
}

result<void> router::check(const packed_piece& whole) const {
  const auto& where = whole.where;
  if (auto valid = check(where); !valid)
    return valid;
  const auto per_block = block_elements_[where.table.value];
  if (where.count == 0 || where.first / per_block != (where.first + where.count - 1) / per_block)
    return {errc::shape_mismatch, "a packed piece must lie within one block"};
  return {};
}

template <class Each>
void router::for_each_block(const range& where, Each each) const {
  const auto per_block = block_elements_[where.table.value];
  cut_at_blocks(where, per_block, [&](const range& part, std::uint64_t offset) {
    const auto block = part.first / per_block;
    each(view_.shard_of[partition_of(job_, where.table, block).value], part, offset);
  });
}

void router::ask(request_token token, request what, time_point now, router_effects& effects) {
  if (auto valid = check(what); !valid) {
    effects.push_back(failed_effect{token, valid.error()});
    return;
  }
  if (what.push || (what.pull && !what.pull->latest))
    fence_other_starts(what.push ? what.push->step : what.pull->step, effects);
  std::map<shard_id, request> parts;
  open_request open;
  if (what.push) {
    split(*what.push, parts);
    open.answer.pushed.emplace();
  }
  if (what.pull) {
    split(*what.pull, parts);
    open.pull = what.pull->step;
    open.others = what.pull->others;
    open.answer.pulled.emplace();
    for (const auto& x : what.pull->rows)
      open.answer.pulled->rows.push_back({{x.table, x.width, x.count, nullptr}, nullptr});
    open.rows = std::move(what.pull->rows);
  }
  if (parts.empty()) {
    effects.push_back(answered_effect{token, std::move(open.answer)});
    return;
  }
  open.parts_open = parts.size();
  requests_[token] = std::move(open);
  for (auto& [owner, part] : parts) {
    part.shard = owner;
    add_part(token, owner, std::move(part), now, effects);
  }
}

void router::split(const push_request& what, std::map<shard_id, request>& parts) {
  for (const auto& entry : view_.chains) {
    auto& part = parts[entry.shard].push.emplace();
    part.step = what.step;
    part.tables = what.tables;
    part.gradient_norm = what.gradient_norm;
    part.others = what.others;
    part.base_version = base_version(chains_[entry.shard], what.steps());
  }
  for (const auto& whole : what.pieces)
    for_each_block(whole.where, [&](shard_id owner, const range& block, std::uint64_t offset) {
      parts[owner].push->pieces.push_back({block, at_offset(whole.values, offset)});
    });
  for (const auto& block : what.packed)
    for_each_block(block.where, [&](shard_id owner, const range&, std::uint64_t) {
      parts[owner].push->packed.push_back(block);
    });
  for (const auto& whole : what.rows)
    for (auto& [owner, piece] : row_split_.split(whole))
      parts[owner].push->rows.push_back(std::move(piece));
}

void router::split(const pull_request& what, std::map<shard_id, request>& parts) const {
  const auto part_of = [&](shard_id owner) -> pull_request& {
    auto& part = parts[owner].pull;
    if (!part)
      part = pull_request{.step = what.step,
                          .latest = what.latest,
                          .ranges = {},
                          .delta = what.delta,
                          .packed_as = what.packed_as,
                          .others = what.others};
    return *part;
  };
  for (const auto& whole : what.ranges)
    for_each_block(whole, [&](shard_id owner, const range& block, std::uint64_t) {
      part_of(owner).ranges.push_back(block);
    });
  for (const auto& whole : what.rows)
    for (auto& [owner, piece] : row_split_.split({whole, nullptr}))
      part_of(owner).rows.push_back(std::move(piece.where));
}

void router::add_part(request_token token, shard_id to, request what, time_point now,
                      router_effects& effects) {
  const part_id id{next_part_++};
  auto& chain = chains_[to];
  assert(chain.open.empty() || chain.open.rbegin()->first < id);
  const auto at = what.push ? 0 : first_reader(chain, what);
  chain.open.emplace(id, open_part{token, std::move(what)});
  part_shard_[id] = to;
  place(chain, id, at, now, effects);
}

/// Sends a part; while others wait to be resent, it waits with them (invariant 2).
void router::send_in_turn(chain_queue& to, part_id id, router_effects& effects) {
  bool& waits = to.open.at(id).waits;
  waits = waits_for_push(to, id);
  if (to.entry.serving && !to.resend_at && !waits)
    send(to, id, effects);
}

/// Returns whether a pull has to wait for an earlier push of its workers. A pull tells that these
/// pushes were made, so a server that has just refused one must not hear of the pull. It does not
/// wait for pushes of other workers: one that no server lists would block workers that others wait
/// for.
bool router::waits_for_push(const chain_queue& in, part_id id) const {
  const auto part = in.open.find(id);
  const request& what = part->second.what;
  return only_heads_answer_ && !what.push && !what.pull->latest
         && !mutated(mutation::pull_overtakes_push)
         && std::any_of(in.open.begin(), part, [&](const auto& earlier) {
              return earlier.second.what.push
                     && share_a_worker(*earlier.second.what.push, *what.pull);
            });
}

/// Sends the parts that waited for the push of part `behind`.
void router::send_waiting(chain_queue& to, part_id behind, router_effects& effects) {
  if (!only_heads_answer_)
    return;
  for (auto next = to.open.upper_bound(behind); next != to.open.end(); ++next)
    if (next->second.waits)
      send_in_turn(to, next->first, effects);
}

void router::send(chain_queue& to, part_id id, router_effects& effects) {
  auto& part = to.open.at(id);
  send_part_effect effect{id, to.entry, part.what, to.attempt};
  if (part.at > 0) {
    effect.to.head = to.entry.others[part.at - 1];
    effect.attempt = part.read = read_attempts | ++to.reads;
  }
  if (part.what.push && first_reader(to, part.what) > 0)
    effect.what.pull.reset(); // It is asked for when the push is done.
  if (effect.what.pull) {
    effect.what.pull->seen = to.seen;
    effect.what.pull->anywhere = part.at > 0;
  }
  effects.push_back(std::move(effect));
}

void router::send_all(chain_queue& to, router_effects& effects) {
  ++to.attempt;
  to.resend_at.reset();
  for (const auto& [id, part] : to.open)
    if (part.at == 0)
      send_in_turn(to, id, effects);
}

/// Introduces waiting workers to a new head by an empty pull, which is answered at once.
void router::introduce_waiting(chain_queue& to, time_point now, router_effects& effects) {
  if (!only_heads_answer_ || mutated(mutation::nobody_introduced))
    return;
  for (auto& [token, open] : requests_) {
    const bool is_there =
      std::ranges::any_of(to.open, [&](const auto& entry) { return entry.second.owner == token; });
    if (!open.pull || is_there)
      continue;
    ++open.parts_open;
    add_part(
      token, to.entry.shard,
      {{}, pull_request{.step = *open.pull, .ranges = {}, .others = open.others}, to.entry.shard},
      now, effects);
  }
}

// -- replicas that answer pulls --

/// Returns whether replicas other than the head may answer the request.
bool router::is_anywhere(const chain_queue& of, const request& what) const {
  return !what.push && what.pull && !of.entry.others.empty()
         && (!only_heads_answer_ || what.pull->latest);
}

/// Returns the replica to ask first for the values, once the push is done.
std::size_t router::first_reader(const chain_queue& of, const request& what) const {
  const bool spreads = options_.reads == read_target::any && what.pull && !what.pull->latest;
  if (!spreads || only_heads_answer_ || of.entry.others.empty())
    return 0;
  return (what.pull->step.worker.value + of.entry.shard.value) % (1 + of.entry.others.size());
}

/// Returns the replica to ask after the present one. Besides the head, only the tail answers a
/// `latest` pull.
std::size_t router::next_reader(const chain_queue& of, const open_part& part) const {
  if (part.what.pull->latest)
    return part.at == 0 ? of.entry.others.size() : 0;
  return (part.at + 1) % (1 + of.entry.others.size());
}

void router::wait_patiently(const chain_queue& of, open_part& part, time_point now) const {
  const bool never_waits = is_anywhere(of, part.what) && (!pulls_wait_ || part.what.pull->latest);
  const bool is_patient = options_.read_patience == std::chrono::milliseconds{0};
  part.patience_end = {};
  if (never_waits && !is_patient)
    part.patience_end = now + options_.read_patience
                        + std::chrono::milliseconds{bytes_of(*part.what.pull) / bytes_per_ms};
}

void router::place(chain_queue& to, part_id id, std::size_t at, time_point now,
                   router_effects& effects) {
  auto& part = to.open.at(id);
  assert(!part.what.push || at == 0);
  part.at = at <= to.entry.others.size() ? at : 0;
  wait_patiently(to, part, now);
  if (part.at > 0)
    send(to, id, effects);
  else
    send_in_turn(to, id, effects);
}

// -- replies --

router::chain_queue* router::holder(part_id id) {
  const auto found = part_shard_.find(id);
  return found == part_shard_.end() ? nullptr : &chains_.at(found->second);
}

void router::answered(part_id id, reply answer, time_point now, router_effects& effects) {
  auto* from = holder(id);
  if (from == nullptr)
    return;
  auto& part = from->open.at(id);
  const auto token = part.owner;
  if (!part.what.push && answer.pushed && !answer.pulled)
    return; // Its push was acknowledged meanwhile, and the pull was sent again.
  if (!answers(answer, part.what)) {
    fail_request(token, {errc::malformed, "a server answered something else than it was asked"},
                 effects);
    return;
  }
  auto& open = requests_.at(token);
  const auto learn = [&](std::uint64_t version) {
    from->seen = std::max(from->seen, chain_version{answer.generation, version});
  };
  if (part.what.push) {
    learn(answer.pushed->version);
    open.answer.pushed->version = std::max(open.answer.pushed->version, answer.pushed->version);
    open.answer.pushed->duplicate |= answer.pushed->duplicate;
  }
  if (part.what.pull && !answer.pulled) {
    part.what.push.reset();
    place(*from, id, first_reader(*from, part.what), now, effects);
    send_waiting(*from, id, effects);
    return;
  }
  if (part.what.pull) {
    auto& whole = *open.answer.pulled;
    if (!part.what.pull->latest)
      learn(answer.pulled->version);
    if (may_change(*part.what.pull)) { // Not an introduction, nor of frozen tables alone.
      remember_version(*from, *part.what.pull, answer.pulled->version);
      whole.version = std::max(whole.version, answer.pulled->version);
    }
    std::move(answer.pulled->pieces.begin(), answer.pulled->pieces.end(),
              std::back_inserter(whole.pieces));
    std::ranges::move(answer.pulled->packed, std::back_inserter(whole.packed));
    whole.unchanged.insert(whole.unchanged.end(), answer.pulled->unchanged.begin(),
                           answer.pulled->unchanged.end());
    row_split_.join(part.what.pull->rows, answer.pulled->rows, open.rows, whole.rows);
  }
  const bool was_push = part.what.push.has_value();
  from->open.erase(id);
  part_shard_.erase(id);
  if (was_push)
    send_waiting(*from, id, effects);
  assert(open.parts_open > 0);
  if (--open.parts_open == 0) {
    effects.push_back(answered_effect{token, std::move(open.answer)});
    requests_.erase(token);
  }
}

bool router::may_change(const pull_request& pull) const {
  return !pull.rows.empty() || std::ranges::any_of(pull.ranges, [&](const range& x) {
    return !job_.tables[x.table.value].frozen;
  });
}

void router::remember_version(chain_queue& of, const pull_request& pull, std::uint64_t version) {
  // More than any worker pulls ahead. Batches that are never pushed drop out.
  constexpr std::size_t remembered_max = 16;
  auto batches = std::set{pull.step.batch};
  for (const auto& other : pull.others)
    batches.insert(other.batch);
  of.versions.emplace_front(std::move(batches), version);
  if (of.versions.size() > remembered_max)
    of.versions.pop_back();
}

/// Returns the oldest version read for these batches; a batch without a pull counts with the last
/// read.
std::uint64_t router::base_version(const chain_queue& of, const std::vector<step_header>& steps) {
  auto oldest = std::numeric_limits<std::uint64_t>::max();
  if (of.versions.empty())
    return oldest; // A shard that was never asked for values gave no old ones.
  for (const auto& step : steps) {
    const auto found = std::ranges::find_if(
      of.versions, [&](const auto& entry) { return entry.first.contains(step.batch); });
    oldest = std::min(oldest, (found == of.versions.end() ? of.versions.begin() : found)->second);
  }
  return oldest;
}

void router::failed(part_id id, std::uint64_t attempt, const failure& why, time_point now,
                    router_effects& effects) {
  auto* from = holder(id);
  if (from == nullptr)
    return;
  auto& part = from->open.at(id);
  const bool is_read = (attempt & read_attempts) != 0;
  const bool is_drop = reaction_to(why.code) == reaction::drop;
  if (is_read ? part.at == 0 || attempt != part.read : attempt != from->attempt && !is_drop)
    return;
  assert(is_drop || attempt == (is_read ? part.read : from->attempt));
  if (why.code == errc::not_yet) { // The server is healthy; ask it again.
    if (is_read || part.at == 0)
      place(*from, id, part.at, now, effects);
  } else if (reaction_to(why.code) != reaction::retry) {
    fail_request(part.owner, why, effects);
  } else if (is_read) {
    place(*from, id, 0, now, effects);
  } else {
    ++from->attempt; // Outcomes in flight no longer count, except successes and drops.
    if (from->entry.serving)
      from->resend_at = now + options_.retry_pause;
    if (part.at == 0 && is_anywhere(*from, part.what))
      place(*from, id, next_reader(*from, part), now, effects);
  }
}

void router::fence_other_starts(const step_header& by, router_effects& effects) {
  const auto is_other = [&](const request& what) {
    const bool is_sum = what.push ? !what.push->others.empty() : !what.pull->others.empty();
    const step_header& step = what.push ? what.push->step : what.pull->step;
    return !is_sum && step.worker == by.worker && step.incarnation != by.incarnation
           && (what.push || !what.pull->latest);
  };
  std::set<request_token, std::greater<>> others; // A pull ends before the push that it waits for.
  for (const auto& [unused, chain] : chains_)
    for (const auto& [id, part] : chain.open)
      if (is_other(part.what))
        others.insert(part.owner);
  for (const request_token token : others)
    fail_request(token, {errc::fenced, "a later start of its worker asks here"}, effects);
}

void router::fail_request(request_token token, const failure& why, router_effects& effects) {
  for (auto& [unused, chain] : chains_) {
    std::optional<part_id> push;
    std::erase_if(chain.open, [&](const auto& entry) {
      if (entry.second.owner != token)
        return false;
      part_shard_.erase(entry.first);
      if (entry.second.what.push)
        push = entry.first;
      return true;
    });
    if (push)
      send_waiting(chain, *push, effects);
  }
  assert(requests_.contains(token));
  requests_.erase(token);
  effects.push_back(failed_effect{token, why});
}

void router::tick(time_point now, router_effects& effects) {
  for (auto& [unused, chain] : chains_) {
    if (chain.resend_at && *chain.resend_at <= now && chain.entry.serving)
      send_all(chain, effects);
    for (auto& [id, part] : chain.open)
      if (part.patience_end != time_point{0} && part.patience_end <= now)
        place(chain, id, next_reader(chain, part), now, effects);
  }
}

std::optional<time_point> router::next_tick() const {
  std::optional<time_point> earliest;
  const auto add = [&](time_point x) { earliest = std::min(earliest.value_or(x), x); };
  for (const auto& [unused, chain] : chains_) {
    if (chain.resend_at)
      add(*chain.resend_at);
    for (const auto& [unused_too, part] : chain.open)
      if (part.patience_end != time_point{0})
        add(part.patience_end);
  }
  return earliest;
}

std::vector<std::string> router::waits() const {
  const auto text = [](const auto& x) { return std::to_string(x.value); };
  std::vector<std::string> all;
  for (const auto& [shard, chain] : chains_)
    for (const auto& [id, part] : chain.open) {
      std::string line =
        "part " + text(id) + " of request " + text(part.owner) + " to shard " + text(shard) + ":";
      if (part.what.push)
        for (const auto& step : part.what.push->steps())
          line += " push of batch " + text(step.batch) + " at clock " + std::to_string(step.clock);
      if (part.what.pull)
        line += " pull at clock " + std::to_string(part.what.pull->step.clock);
      line += part.waits             ? ", waiting for an earlier push"
              : !chain.entry.serving ? ", waiting for a head that serves"
              : chain.resend_at      ? ", waiting for the pause to end"
                                     : ", sent in attempt " + std::to_string(chain.attempt);
      all.push_back(std::move(line));
    }
  return all;
}

} // namespace troupe
