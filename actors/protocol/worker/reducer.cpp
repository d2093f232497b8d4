#include "actors/protocol/worker/reducer.hpp"

#include "actors/protocol/mutation.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

namespace troupe {

namespace {

const step_header& step_of(const request& what) {
  return what.push ? what.push->step : what.pull->step;
}

/// Returns whether requests that were refused together may be sent one by one. A rolled-back
/// history concerns all of them, and a request that is too large as one is too large as several;
/// their workers begin again.
bool goes_alone(errc code) {
  return reaction_to(code) != reaction::retry && code != errc::rolled_back
         && code != errc::overloaded;
}

} // namespace

reducer::reducer(const job_spec& job, reducer_options options)
    : job_(job), options_(options), goes_by_clocks_(goes_by_clocks(job)),
      least_lead_(least_lead(job)) {}

void reducer::ask(request_token token, request what, time_point now, reducer_effects& effects) {
  const auto step = step_of(what);
  const bool waits = !what.pull || !what.pull->latest;
  auto& open = requests_[token];
  open.worker = step.worker;
  if (what.push)
    open.push = std::make_shared<const push_request>(*std::move(what.push));
  open.pull = std::move(what.pull);
  auto& worker = workers_[step.worker];
  ++worker.open;
  worker.expected = true;
  assert(token == requests_.rbegin()->first);
  if (!waits)
    return forward({{token, open.push != nullptr, open.pull.has_value()}}, effects);
  share mine{token, open.push != nullptr, open.pull.has_value()};
  if (round_ && !fits(open, step.generation))
    end_round(effects);
  assert(!round_ || fits(open, step.generation));
  if (goes_by_clocks_ && mine.push) {
    forward({{token, std::exchange(mine.push, false), false}}, effects);
    if (!mine.pull)
      return;
  }
  if (!round_)
    round_ = round{{}, step.generation, now + options_.wait};
  round_->shares.push_back(mine);
  if (all_there())
    end_round(effects);
}

/// Returns whether the request may join the open round. A sum is of the same tables for all of its
/// batches.
bool reducer::fits(const open_request& what, generation_id generation) const {
  return generation == round_->generation
         && std::ranges::none_of(round_->shares, [&](const share& x) {
              const auto& other = requests_.at(x.token);
              return other.worker == what.worker
                     || (other.push && what.push && other.push->tables != what.push->tables);
            });
}

/// Returns whether the round is complete. A worker that waits for a reply sends no request, and the
/// requests in the round may be needed for that reply.
bool reducer::all_there() const {
  return std::ranges::all_of(
    workers_, [](const auto& entry) { return !entry.second.expected || entry.second.open > 0; });
}

void reducer::tick(time_point now, reducer_effects& effects) {
  if (!round_ || now < round_->ends)
    return;
  for (auto& [worker, state] : workers_)
    if (state.open == 0 && std::exchange(state.expected, false))
      effects.push_back(left_out_effect{worker});
  end_round(effects);
  assert(!round_);
}

std::optional<time_point> reducer::next_tick() const {
  return round_ ? std::optional{round_->ends} : std::nullopt;
}

// -- going on --

void reducer::end_round(reducer_effects& effects) {
  const auto ended = std::exchange(round_, std::nullopt);
  std::vector<share> pushers, readers;
  for (const share& x : ended->shares)
    (x.push ? pushers : readers).push_back(x);
  go_on(pushers, effects);
  go_on(readers, effects); // Apart: the push of an evicted worker is held until it is back.
}

/// Forwards these shares. In ssp a push goes with the pull that came with it, if any, and with no
/// other.
void reducer::go_on(std::vector<share> together, reducer_effects& effects) {
  for (const auto& tokens : pulls_together(together)) {
    std::vector<share> shares;
    for (share& x : together) {
      const bool pulls = std::ranges::count(tokens, x.token) > 0;
      const bool pushes = x.push && (pulls || !least_lead_);
      if (pushes || pulls)
        shares.push_back({x.token, pushes, pulls});
      x.push = x.push && !pushes;
    }
    forward(std::move(shares), effects);
  }
  std::erase_if(together, [](const share& x) { return !x.push; });
  if (!together.empty())
    forward(std::move(together), effects); // None pulls.
}

/// Groups the pulls. Each list is one pull; its first has the largest clock.
std::vector<std::vector<request_token>>
reducer::pulls_together(const std::vector<share>& shares) const {
  std::vector<request_token> left;
  for (const share& x : shares)
    if (x.pull)
      left.push_back(x.token);
  const auto pull_of = [&](request_token token) -> const pull_request& {
    return *requests_.at(token).pull;
  };
  std::ranges::stable_sort(left, std::ranges::greater{},
                           [&](request_token x) { return pull_of(x).step.clock; });
  std::vector<std::vector<request_token>> all;
  while (!left.empty()) {
    auto& together = all.emplace_back(std::vector{left.front()});
    left.erase(left.begin());
    std::erase_if(left, [&](request_token x) {
      const bool shares_it = same_values(pull_of(together.front()), pull_of(x));
      if (shares_it)
        together.push_back(x);
      return shares_it;
    });
  }
  return all;
}

bool reducer::same_values(const pull_request& first, const pull_request& other) const {
  return first.rows.empty() && other.rows.empty() && first.delta == other.delta
         && first.packed_as == other.packed_as && first.ranges == other.ranges
         && std::ranges::equal(first.ranges, other.ranges, {}, &range::stamp, &range::stamp)
         && (!goes_by_clocks_
             || bsp_clock(job_, first.step.batch) == bsp_clock(job_, other.step.batch))
         && (!least_lead_ || first.step.clock - other.step.clock <= *least_lead_);
}

void reducer::forward(std::vector<share> shares, reducer_effects& effects) {
  const sum_id number{next_forward_++};
  sum_effect effect{number, {}, {}};
  std::vector<const pull_request*> pulls;
  for (const share& x : shares) {
    auto& open = requests_.at(x.token);
    if (x.push)
      effect.pushes.push_back(open.push);
    if (x.pull)
      pulls.push_back(&*open.pull);
  }
  std::ranges::stable_sort(pulls, std::ranges::greater{},
                           [](const pull_request* x) { return x->step.clock; });
  for (const pull_request* x : pulls)
    if (!effect.pull)
      effect.pull = *x;
    else
      effect.pull->others.push_back(x->step);
  assert(is_one_sum(effect.pushes));
  forwards_.emplace(number, std::move(shares));
  held_.push_back(std::move(effect));
  release(effects);
}

/// Returns whether the pushes have one batch of each worker, one generation and one set of tables.
bool reducer::is_one_sum(const std::vector<std::shared_ptr<const push_request>>& pushes) {
  return std::ranges::all_of(pushes, [&](const auto& x) {
    return x->tables == pushes.front()->tables
           && x->step.generation == pushes.front()->step.generation
           && std::ranges::count_if(pushes, [&](const auto& y) {
                return y->step.worker == x->step.worker;
              }) == 1;
  });
}

/// Sends the forwards that need not wait. No two wait for each other: a share waits for smaller
/// tokens of its worker, which are of earlier rounds, and a round has one share of each worker.
void reducer::release(reducer_effects& effects) {
  const auto waits = [&](const sum_effect& x) {
    return std::ranges::any_of(forwards_.at(x.number),
                               [&](const share& y) { return is_behind_a_push(y.token); });
  };
  const auto free = std::ranges::stable_partition(held_, waits);
  std::ranges::move(free, std::back_inserter(effects));
  held_.erase(free.begin(), free.end());
}

/// Returns whether, with a bounded lead, an earlier push of its worker is open.
bool reducer::is_behind_a_push(request_token token) const {
  const auto mine = requests_.find(token);
  if (!least_lead_ || goes_by_clocks_ || (mine->second.pull && mine->second.pull->latest))
    return false;
  return std::any_of(requests_.begin(), mine, [&](const auto& earlier) {
    return earlier.second.push && earlier.second.worker == mine->second.worker;
  });
}

// -- outcomes --

void reducer::answered(sum_id number, const reply& answer, reducer_effects& effects) {
  const auto found = forwards_.extract(number);
  if (!found)
    return;
  for (const share& x : found.mapped()) {
    const auto asked = requests_.find(x.token);
    if (asked == requests_.end())
      continue; // Its other half has failed.
    auto& open = asked->second;
    if (x.push)
      open.answer.pushed = answer.pushed;
    if (x.pull)
      open.answer.pulled = answer.pulled;
    open.answer.generation = answer.generation;
    if ((open.push && !open.answer.pushed) || (open.pull && !open.answer.pulled))
      continue;
    effects.push_back(answered_effect{x.token, std::move(open.answer)});
    end(x.token);
  }
  release(effects);
}

void reducer::failed(sum_id number, const failure& why, reducer_effects& effects) {
  const auto found = forwards_.extract(number);
  if (!found)
    return;
  const auto& shares = found.mapped();
  const bool alone = shares.size() > 1 && goes_alone(why.code);
  for (const share& x : shares) {
    const auto asked = requests_.find(x.token);
    if (asked == requests_.end())
      continue;
    if (alone && &x != &shares.front() && mutated(mutation::refused_sum_forgotten))
      continue;
    if (alone) {
      forward({x}, effects);
    } else {
      effects.push_back(failed_effect{x.token, why});
      end(x.token);
    }
  }
  release(effects);
}

/// Ends a request. In bsp the rest of it may still be in the open round.
void reducer::end(request_token token) {
  if (round_) {
    std::erase_if(round_->shares, [&](const share& x) { return x.token == token; });
    if (round_->shares.empty())
      round_.reset();
  }
  auto& worker = workers_.at(requests_.at(token).worker);
  assert(worker.open > 0);
  --worker.open;
  requests_.erase(token);
}

} // namespace troupe
