#include "actors/training/replay.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

namespace troupe {

namespace {

using storage::trace_entry;

constexpr request_token pull_token{1};
constexpr request_token push_token{2};

std::string title(const trace_entry& x, std::size_t chain) {
  return "step " + std::to_string(x.version) + " of shard " + std::to_string(chain) + " (batch "
         + std::to_string(x.batch.value) + " of worker " + std::to_string(x.worker.value) + ")";
}

} // namespace

replay::replay(job_spec job, const trainer_factory& make, const server_functions& functions,
               given_values given)
    : job_(std::move(job)), functions_(functions), given_(std::move(given)),
      by_clocks_(goes_by_clocks(job_)), computer_(job_, make), known_(empty_cache(job_)),
      chains_(job_.shard_count()) {
  for (std::uint32_t i = 0; i < job_.tables.size(); ++i)
    all_tables_.push_back({i});
  view_.config = {1};
  view_.shard_of.resize(job_.partitions);
  for (std::uint32_t i = 0; i < chains_.size(); ++i)
    view_.chains.push_back({{i}, {}, true});
}

result<std::unique_ptr<replay>> replay::begin(storage::push_history recorded,
                                              const trainer_factory& make,
                                              const server_functions& functions, given_values given,
                                              const std::vector<pure_stage>& stages) {
  auto path = pure_path::of(stages);
  if (!path)
    return path.error();
  std::unique_ptr<replay> made{
    new replay{std::move(recorded.job), make, functions, std::move(given)}};
  made->path_ = *std::move(path);
  for (auto& history : recorded.chains)
    if (auto added = made->add(history); !added)
      return added.error();
  for (std::size_t i = 0; i < made->chains_.size(); ++i)
    if (!made->chains_[i].values)
      return {errc::damaged, "no server's record has shard " + std::to_string(i)};
  if (any_frozen(made->job_)) {
    pull_request everything;
    everything.latest = true;
    everything.ranges = made->known_->ranges;
    const request_token token{made->next_token_++};
    const auto asked = made->pass_on(token, everything);
    if (!asked)
      return asked.error();
    auto first = made->read(*asked);
    if (first)
      first = made->pass_back(token, *std::move(first));
    if (!first)
      return first.error();
    const auto whole = hold(made->job_, *made->known_, *first, *made->pool_);
    if (!whole)
      return whole.error();
    made->known_ = frozen_cache(made->job_, **whole);
  }
  return made;
}

result<void> replay::add(storage::chain_history& history) {
  const auto at = history.shard.value;
  const auto name = "shard " + std::to_string(at);
  if (!storage::begins_job(history, job_) || (at < chains_.size() && chains_[at].values))
    return {errc::invalid_argument,
            name + " began again with "
              + (history.base_checkpoint == 0
                   ? "its initial values"
                   : "checkpoint " + std::to_string(history.base_checkpoint))
              + " in this run: a rollback cannot be replayed"};
  const auto beyond = [&](const trace_entry& x) { return x.batch.value >= job_.batches(); };
  const auto elsewhere = [&](partition_id x) { return x.value >= job_.partitions; };
  if (at >= chains_.size() || std::ranges::any_of(history.partitions, elsewhere)
      || std::ranges::any_of(history.applied, beyond) || std::ranges::any_of(history.read, beyond))
    return {errc::damaged, "the record of " + name + " does not fit its job"};
  auto& chain = chains_[at];
  chain.values = std::make_shared<table_store>(job_, history.partitions, pool_, functions_, given_);
  for (const auto partition : history.partitions)
    view_.shard_of[partition.value] = {at};
  for (const auto* const all : {&history.read, &history.applied}) // Applied versions win.
    for (const auto& x : *all)
      gradient_of(x).bases[at] = x.base_version;
  chain.partitions = history.partitions;
  chain.records = std::move(history.applied);
  return {};
}

replay::open_gradient& replay::gradient_of(const trace_entry& record) {
  const auto [at, is_new] =
    gradients_.try_emplace({record.worker, record.incarnation, record.batch});
  auto& found = at->second;
  if (is_new) {
    found.step = {record.worker, record.incarnation, {}, record.batch, record.clock};
    found.bases.resize(chains_.size());
    // All workers read the same version in a clock, so no record of the read is needed.
    if (by_clocks_)
      std::ranges::fill(found.bases, bsp_clock(job_, record.batch));
  }
  return found;
}

router replay::make_router() const {
  router made{job_};
  router_effects none;
  made.set_view(view_, {}, none);
  return made;
}

std::uint64_t replay::steps_in_all() const {
  std::uint64_t all = steps_;
  for (const auto& chain : chains_)
    for (std::size_t i = chain.next; i < chain.records.size(); i += chain.records[i].slots)
      ++all;
  return all;
}

double replay::loss() const {
  if (losses_.empty())
    return 0;
  const auto [sum, count] = losses_.rbegin()->second;
  return sum / static_cast<double>(count);
}

result<pull_reply> replay::read(const pull_request& what) const {
  auto way = make_router();
  router_effects effects;
  way.ask(pull_token, {{}, what}, {}, effects);
  for (std::size_t i = 0; i < effects.size(); ++i) {
    const auto each = effects[i]; // A copy: answered() may add effects.
    if (const auto* part = std::get_if<send_part_effect>(&each))
      way.answered(part->part,
                   {{}, chains_[part->to.shard.value].values->read(*part->what.pull, {})}, {},
                   effects);
    else if (const auto* failed = std::get_if<failed_effect>(&each))
      return failed->why;
    else
      return *std::get<answered_effect>(each).answer.pulled;
  }
  return pull_reply{};
}

std::vector<partition_image> replay::images() {
  std::vector<partition_image> all;
  for (const auto& chain : chains_) {
    std::vector<shard_partition> held;
    for (const auto id : chain.partitions)
      held.push_back({id, chain.version, std::vector<batch_set>(job_.tables.size())});
    std::ranges::move(chain.values->pin(held), std::back_inserter(all));
  }
  return all;
}

// -- gradients --

/// Pulls the values for a gradient as its worker did.
result<void> replay::open(open_gradient& what) {
  what.opened = true;
  what.asked.resize(chains_.size());
  what.parts.resize(chains_.size());
  if (any_sparse(job_)) {
    auto named = computer_.keys({0, what.step.batch});
    if (named.failed)
      return *named.failed;
    what.rows = std::move(named.rows);
  }
  what.way.emplace(make_router());
  what.pull = {next_token_++};
  auto asked = pass_on(what.pull, {what.step, false, known_->ranges, what.rows});
  if (!asked)
    return asked.error();
  router_effects effects;
  what.way->ask(pull_token, {{}, *std::move(asked)}, {}, effects);
  return follow(what, effects);
}

result<void> replay::follow(open_gradient& what, const router_effects& effects) {
  for (const auto& each : effects) {
    if (const auto* part = std::get_if<send_part_effect>(&each))
      what.asked[part->to.shard.value] = *part;
    else if (const auto* failed = std::get_if<failed_effect>(&each))
      return failed->why;
    else if (auto done = compute(what, *std::get<answered_effect>(each).answer.pulled); !done)
      return done;
  }
  return {};
}

result<void> replay::answer_reads(std::size_t at) {
  auto& chain = chains_[at];
  const auto [first, last] = chain.reads.equal_range(chain.version);
  for (auto each = first; each != last; ++each) {
    auto& what = *each->second;
    if (!what.opened)
      if (auto opened = open(what); !opened)
        return opened;
    const auto part = std::exchange(what.asked[at], std::nullopt);
    if (!part)
      continue; // It needs no values of this shard.
    auto found = chain.values->read(*part->what.pull, {});
    found.version = chain.version;
    router_effects effects;
    what.way->answered(part->part, {{}, std::move(found)}, {}, effects);
    if (auto followed = follow(what, effects); !followed)
      return followed;
  }
  chain.reads.erase(first, last);
  return {};
}

/// Passes a pull on through the stages, as from its worker.
result<pull_request> replay::pass_on(request_token token, pull_request pull) {
  if (path_.is_empty())
    return pull;
  auto sent = path_.forward(token, {{}, std::move(pull)});
  if (!sent)
    return sent.error();
  if (!sent->pull)
    return {errc::contract_broken, "a stage forwarded a pull as something else"};
  return *std::move(sent->pull);
}

/// Passes an answer back through the stages, as to the worker that asked.
result<pull_reply> replay::pass_back(request_token token, pull_reply answer) {
  if (path_.is_empty())
    return answer;
  auto got = path_.answer(token, {{}, std::move(answer)});
  if (!got)
    return got.error();
  if (!got->pulled)
    return {errc::contract_broken, "a stage answered a pull without values"};
  return *std::move(got->pulled);
}

/// Passes a push on through the stages, as from its worker.
result<push_request> replay::pass_on(push_request push) {
  if (path_.is_empty())
    return push;
  const request_token token{next_token_++};
  auto sent = path_.forward(token, {std::move(push), {}});
  if (!sent)
    return sent.error();
  if (!sent->push)
    return {errc::contract_broken, "a stage forwarded a push without values"};
  if (auto got = path_.answer(token, {push_reply{}, {}}); !got)
    return got.error();
  return *std::move(sent->push);
}

result<void> replay::compute(open_gradient& what, const pull_reply& given) {
  const auto passed = pass_back(what.pull, given);
  if (!passed)
    return passed.error();
  const auto& answer = *passed;
  const auto whole = hold(job_, *known_, answer, *pool_);
  if (!whole)
    return whole.error();
  gradient_task task{0, what.step.batch, (*whole)->tables, what.rows, answer.version, {}};
  for (const auto& x : answer.rows)
    task.parameters[x.where.table.value] = x.values;
  auto outcome = computer_.compute(task);
  if (outcome.failed)
    return *outcome.failed;
  what.computed = true;
  ++computed_;
  auto& [sum, count] = losses_[what.step.batch.value / job_.batches_per_epoch()];
  sum += outcome.loss;
  ++count;
  router_effects effects;
  auto way = std::move(*what.way);
  what.way.reset();
  auto push = pass_on({what.step, all_tables_, answer.version, outcome.norm,
                       std::move(outcome.pieces), std::move(outcome.rows)});
  if (!push)
    return push.error();
  way.ask(push_token, {*std::move(push), {}}, {}, effects);
  for (auto& each : effects) {
    if (const auto* failed = std::get_if<failed_effect>(&each))
      return failed->why;
    auto& part = std::get<send_part_effect>(each);
    what.parts[part.to.shard.value] =
      std::make_shared<const push_request>(*std::move(part.what.push));
  }
  return {};
}

// -- steps --

result<void> replay::run(const std::function<void()>& stepped) {
  for (auto& [unused, each] : gradients_)
    for (std::size_t i = 0; i < chains_.size(); ++i)
      if (each.bases[i])
        chains_[i].reads.emplace(*each.bases[i], &each);
  for (std::size_t i = 0; i < chains_.size(); ++i)
    if (auto read = answer_reads(i); !read)
      return read;
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (std::size_t i = 0; i < chains_.size(); ++i) {
      const auto taken = step(i);
      if (!taken)
        return taken.error();
      if (*taken && stepped)
        stepped();
      goes_on = goes_on || *taken;
    }
  }
  const bool done =
    std::ranges::all_of(chains_, [](const auto& x) { return x.next == x.records.size(); });
  return done ? result<void>{} : stalled();
}

/// Takes the shard's next step. Returns false if its gradients are not all computed.
result<bool> replay::step(std::size_t at) {
  auto& chain = chains_[at];
  if (chain.next == chain.records.size())
    return false;
  const auto& record = chain.records[chain.next];
  std::vector<std::shared_ptr<const push_request>*> parts;
  for (std::size_t i = 0; i < record.slots; ++i) {
    auto& gradient = gradient_of(chain.records[chain.next + i]);
    if (!gradient.opened)
      if (auto opened = open(gradient); !opened)
        return opened.error();
    if (!gradient.computed)
      return false;
    parts.push_back(&gradient.parts[at]);
  }
  std::vector<const push_request*> pushes;
  for (const auto* const part : parts)
    pushes.push_back(part->get());
  const auto staleness =
    by_clocks_ || chain.version < record.base_version ? 0 : chain.version - record.base_version;
  if (auto done = chain.values->apply({all_tables_, {}, staleness, pushes.size()}, pushes); !done)
    return failure{done.error().code, title(record, at) + ": " + done.error().text};
  for (auto* const part : parts)
    part->reset();
  chain.next += record.slots;
  ++chain.version;
  ++steps_;
  if (auto read = answer_reads(at); !read)
    return read.error();
  return true;
}

/// Returns the reason why the first open step cannot be taken.
failure replay::stalled() const {
  for (std::size_t at = 0; at < chains_.size(); ++at) {
    const auto& chain = chains_[at];
    if (chain.next == chain.records.size())
      continue;
    for (std::size_t i = 0; i < chain.records[chain.next].slots; ++i) {
      const auto& record = chain.records[chain.next + i];
      const auto& gradient = gradients_.at({record.worker, record.incarnation, record.batch});
      for (std::size_t of = 0; of < chains_.size(); ++of) {
        if (gradient.asked.empty() || !gradient.asked[of])
          continue;
        const auto base = gradient.bases[of];
        const auto needed = base ? "version " + std::to_string(*base) : std::string{"a version"};
        return {errc::damaged,
                title(record, at) + " was computed from " + needed + " of shard "
                  + std::to_string(of)
                  + (base ? ", which is not there before that step" : " that no record names")};
      }
    }
  }
  return {errc::damaged, "the record does not go on"};
}

} // namespace troupe
