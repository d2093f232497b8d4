#include "actors/protocol/worker/stage_guard.hpp"

#include "base/exception_text.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstddef>
#include <span>

namespace troupe {

namespace {

std::string named(const std::pair<worker_id, batch_id>& which) {
  return "batch " + std::to_string(which.second.value) + " of worker "
         + std::to_string(which.first.value);
}

std::pair<worker_id, batch_id> key_of(const step_header& step) { return {step.worker, step.batch}; }

/// Calls `each` for the batches of a push.
template <class Each>
void for_each_batch(const push_request& push, Each each) {
  each(key_of(push.step));
  for (const auto& other : push.others)
    each(key_of(other));
}

/// Returns the index of the first value that is not finite; the number of values: there is none.
std::size_t first_non_finite(std::span<const float> values) {
  constexpr std::uint32_t exponent = 0x7f800000; // All of its bits are set in infinities and NaNs.
  constexpr std::size_t stretch = 64;            // Without branches, for vector instructions.
  const auto is_wrong = [](float x) {
    return (std::bit_cast<std::uint32_t>(x) & exponent) == exponent;
  };
  std::size_t at = 0;
  for (; at + stretch <= values.size(); at += stretch) {
    bool is_any = false;
    for (std::size_t i = 0; i < stretch; ++i)
      is_any |= is_wrong(values[at + i]);
    if (is_any)
      break;
  }
  while (at < values.size() && !is_wrong(values[at]))
    ++at;
  return at;
}

} // namespace

stage_guard::stage_guard(std::string name, std::unique_ptr<stage_decider> stage, bool checks_values)
    : name_(std::move(name)), stage_(std::move(stage)), checks_values_(checks_values) {}

// -- events --

void stage_guard::ask(request_token token, request what, time_point now, guard_effects& effects) {
  if (broken_) {
    effects.push_back(failed_effect{token, *broken_});
    return;
  }
  newest_ = token;
  const auto by = what.push ? what.push->step.worker : what.pull->step.worker;
  auto& open = open_.add(token.value, {by, {}, {}, now + held_time_max, {}, {}, {}});
  if (what.push && checks_values_)
    open.values.add(*what.push);
  if (what.pull && checks_values_)
    open.rows = what.pull->rows;
  if (what.push)
    open.tables = what.push->tables;
  if (what.push)
    for_each_batch(*what.push, [&](const batch_key& key) {
      open.batches.push_back(key);
      batches_[key].push_back({token, batch_state::held});
      held_[key.first].emplace_back(token, key.second);
    });
  if (what.pull) {
    open.pull = key_of(what.pull->step);
    pulls_.insert_or_assign(*open.pull, token);
  }
  run([&] { stage_->ask(token, std::move(what), now, decided_); }, effects);
}

void stage_guard::answered(forward_id number, reply what, time_point now, guard_effects& effects) {
  if (!forwards_.contains(number.value))
    return;
  end_forward(number, what.pushed ? batch_state::applied : batch_state::refused);
  run([&] { stage_->answered(number, std::move(what), now, decided_); }, effects);
}

void stage_guard::failed(forward_id number, const failure& why, time_point now,
                         guard_effects& effects) {
  const auto* const forward = forwards_.find(number.value);
  if (forward == nullptr)
    return;
  for (const auto worker : forward->workers)
    for (auto* const so_far : {&refused_pushes_, &refused_pulls_})
      so_far->by_stage.erase(worker);
  end_forward(number, batch_state::refused);
  run([&] { stage_->failed(number, why, now, decided_); }, effects);
}

void stage_guard::tick(time_point now, guard_effects& effects) {
  if (broken_)
    return;
  expire(now, effects);
  if (broken_)
    return;
  poll(now, effects);
  for (const auto number : std::exchange(dropped_, {}))
    run(
      [&] {
        stage_->failed(number, {errc::timed_out, "held for too long"}, now, decided_);
      },
      effects);
}

void stage_guard::poll(time_point now, guard_effects& effects) {
  if (!broken_)
    run([&] { stage_->tick(now, decided_); }, effects);
}

void stage_guard::ended(const std::string& why, guard_effects& effects) {
  if (!broken_)
    breach("ended: " + why, effects);
}

void stage_guard::expire(time_point now, guard_effects& effects) {
  std::set<worker_id> busy;
  forwards_.erase_if([&](std::uint64_t, const open_forward& forward) {
    busy.insert(forward.workers.begin(), forward.workers.end());
    return false;
  });
  std::size_t late = 0;
  std::optional<std::string> fault;
  open_.erase_if([&](std::uint64_t token, open_request& open) {
    if (busy.contains(open.worker))
      open.held_until = now + held_time_max;
    if (open.held_until > now)
      return false;
    assert(!busy.contains(open.worker));
    ++late;
    forget({token}, open);
    expired_.insert(open.batches.begin(), open.batches.end());
    for (const auto& key : open.batches)
      refused(refused_pushes_, {token}, key, fault);
    if (open.pull)
      refused(refused_pulls_, {token}, *open.pull, fault);
    effects.push_back(failed_effect{
      {token}, {errc::timed_out, "stage '" + name_ + "' held a request for too long"}});
    return true;
  });
  if (late > 0)
    effects.push_back(warning_effect{"stage '" + name_ + "' held " + std::to_string(late)
                                     + " requests for more than 10 s: they were refused"});
  if (fault)
    breach(*fault, effects);
}

/// Counts a refusal of a request that was held for too long, and says if it is one too many.
void stage_guard::refused(refusals& so_far, request_token token, const batch_key& key,
                          std::optional<std::string>& fault) {
  const auto times = std::to_string(refusals_max);
  if (++so_far.of_batches[key.second] == refusals_max)
    fault = "held " + named(key) + " for more than 10 s, " + times + " times in a row";
  auto& [count, newest] = so_far.of_workers[key.first];
  if (newest >= token)
    return; // It was held together with the one that was refused before.
  newest = newest_;
  if (++count == refusals_max && !fault)
    fault = "held " + named(key) + " for more than 10 s, like the " + std::to_string(count - 1)
            + " requests of this worker before";
}

// -- what the stage decides --

/// Calls the stage, and passes on what it decided.
template <class Event>
void stage_guard::run(Event event, guard_effects& effects) {
  try {
    event();
    next_tick_ = stage_->next_tick();
  } catch (...) {
    return breach("failed: " + exception_text(), effects);
  }
  for (std::size_t i = 0; i < decided_.list.size(); ++i) { // A breach clears the list.
    auto effect = std::move(decided_.list[i]);
    std::visit(
      [&](auto& x) {
        if constexpr (requires { take(x, effects); })
          take(x, effects);
        else
          effects.push_back(std::move(x));
      },
      effect);
  }
  decided_.list.clear();
}

void stage_guard::take(forward_effect& effect, guard_effects& effects) {
  if (effect.what.push) {
    bool any_late = false;
    for_each_batch(*effect.what.push, [&](const batch_key& key) { any_late |= is_late(key); });
    if (any_late)
      return dropped_.push_back(effect.number); // The stage hears of it with the next tick.
  }
  open_forward forward;
  if (const auto fault = fault_of(effect.what, forward))
    return breach(*fault, effects);
  forwards_.add(effect.number.value, std::move(forward));
  effects.push_back(std::move(effect));
}

/// Whether a forward of this batch can only be the one of a request that was held for too long.
bool stage_guard::is_late(const batch_key& key) const {
  if (!expired_.contains(key))
    return false;
  const auto found = batches_.find(key);
  return found == batches_.end()
         || std::ranges::none_of(found->second, &open_batch::can_be_forwarded);
}

/// Checks a forward and notes its parts. Returns its fault.
std::optional<std::string> stage_guard::fault_of(request& what, open_forward& forward) {
  std::optional<std::string> fault;
  if (what.push)
    for_each_batch(*what.push, [&](const batch_key& key) {
      const auto found = batches_.find(key);
      if (fault)
        return;
      if (found == batches_.end()) {
        fault = "forwarded " + named(key) + ", which it does not hold";
        return;
      }
      const auto next = std::ranges::find_if(found->second, &open_batch::can_be_forwarded);
      if (next == found->second.end()) {
        fault = "forwarded " + named(key) + " twice";
        return;
      }
      if (next->state == batch_state::held)
        std::erase(held_[key.first], std::pair{next->owner, key.second});
      next->state = batch_state::under_way;
      forward.batches.push_back({key, next->owner});
      forward.workers.insert(key.first);
    });
  for (const auto& [key, owner] : forward.batches)
    if (!fault)
      fault = order_fault(key.first, owner);
  for (const auto& [key, owner] : forward.batches)
    if (const auto* const open = open_.find(owner.value);
        !fault && open != nullptr && open->tables != what.push->tables)
      fault = "forwarded " + named(key) + " with other tables than those of its push";
  if (what.push && checks_values_ && !fault)
    fault = value_fault(*what.push, forward);
  if (what.pull) {
    forward.workers.insert(what.pull->step.worker);
    for (const auto& other : what.pull->others)
      forward.workers.insert(other.worker);
  }
  if (fault || !what.pull || what.pull->latest)
    return fault;
  const auto pulls = [&](const step_header& step) {
    const auto found = pulls_.find(key_of(step));
    if (found == pulls_.end() || fault)
      return;
    fault = order_fault(step.worker, {found->second.value + 1});
  };
  pulls(what.pull->step);
  for (const auto& other : what.pull->others)
    pulls(other);
  return fault;
}

/// Checks the values that the stage has made, and corrects the norm if there are any. Returns
/// the fault of the first one that is not finite.
std::optional<std::string> stage_guard::value_fault(push_request& push,
                                                    const open_forward& forward) {
  values_before before;
  for (const auto& part : forward.batches)
    if (const auto* const open = open_.find(part.owner.value))
      before.add(open->values);
  std::optional<std::string> fault;
  for_each_values(push, [&](table_id table, std::span<const float> values) {
    if (fault || before.have(values.data()))
      return;
    if (values.data() == nullptr && !values.empty())
      fault = "forwarded " + named(key_of(push.step)) + " without values of table "
              + std::to_string(table.value);
    else if (const auto at = first_non_finite(values); at < values.size())
      fault = "forwarded " + named(key_of(push.step)) + " with a value that is not finite: "
              + std::to_string(values[at]) + " in table " + std::to_string(table.value);
  });
  if (!fault)
    correct_norm(push, before);
  return fault;
}

/// Returns a fault if a batch of the worker came before `later` and was not forwarded.
std::optional<std::string> stage_guard::order_fault(worker_id worker, request_token later) const {
  const auto found = held_.find(worker);
  if (found == held_.end() || found->second.empty() || found->second.front().first >= later)
    return std::nullopt;
  return "kept back " + named({worker, found->second.front().second})
         + " and forwarded a later request of this worker";
}

void stage_guard::take(answered_effect& effect, guard_effects& effects) {
  auto* const open = open_.find(effect.request.value);
  if (open == nullptr)
    return; // It was refused, as it was held for too long.
  if (const auto fault = answer_fault(*open, effect.answer))
    return breach(*fault, effects);
  const auto end = [](refusals& so_far, const batch_key& key) {
    so_far.of_batches.erase(key.second);
    so_far.of_workers.erase(key.first);
    so_far.by_stage.erase(key.first);
  };
  for (const auto& key : open->batches)
    end(refused_pushes_, key);
  if (open->pull)
    end(refused_pulls_, *open->pull);
  assert(!broken_);
  forget(effect.request, *open_.extract(effect.request.value));
  effects.push_back(std::move(effect));
}

std::optional<std::string> stage_guard::answer_fault(const open_request& open,
                                                     const reply& what) const {
  for (const auto& key : open.batches) {
    const auto found = batches_.find(key);
    if (found == batches_.end() || std::ranges::none_of(found->second, [](const open_batch& x) {
          return x.state == batch_state::applied;
        }))
      return "answered " + named(key) + ", which was not applied";
  }
  if (!open.batches.empty() && !what.pushed)
    return "answered " + named(open.batches.front()) + " without a receipt";
  if (open.pull && !what.pulled)
    return "answered the pull for " + named(*open.pull) + " without values";
  const auto has_rows = [&](const row_keys& asked) {
    return std::ranges::any_of(what.pulled->rows, [&](const row_piece& x) {
      return x.where.table == asked.table && x.where.width == asked.width
             && x.where.count == asked.count && (x.values || asked.count == 0);
    });
  };
  for (const auto& asked : open.rows)
    if (!has_rows(asked))
      return "answered the pull for " + named(*open.pull) + " without the rows of table "
             + std::to_string(asked.table.value);
  return std::nullopt;
}

void stage_guard::take(failed_effect& effect, guard_effects& effects) {
  const auto open = open_.extract(effect.request.value);
  if (!open)
    return;
  assert(!broken_);
  forget(effect.request, *open);
  if (effect.why.text.empty()) // The failure may end the job, whose last line names a cause.
    effect.why.text =
      "stage '" + name_ + "' refused a request without a text (" + to_string(effect.why.code) + ")";
  const auto fault = refusal_fault(*open, effect.why);
  effects.push_back(std::move(effect));
  if (fault)
    breach(*fault, effects);
}

/// Counts a refusal by the stage. Returns its fault.
std::optional<std::string> stage_guard::refusal_fault(const open_request& open,
                                                      const failure& why) {
  auto& so_far = open.batches.empty() ? refused_pulls_ : refused_pushes_;
  if (!checks_values_ || ++so_far.by_stage[open.worker] < own_refusals_max)
    return std::nullopt; // Troupe's faults may refuse any number.
  assert(so_far.by_stage.at(open.worker) == own_refusals_max);
  return "refused " + std::to_string(own_refusals_max) + " requests of worker "
         + std::to_string(open.worker.value) + " in a row, the last one with: " + why.text;
}

// -- notes --

/// Returns the batch of a request; null if the request has ended.
stage_guard::open_batch* stage_guard::find(const batch_key& key, request_token owner) {
  const auto found = batches_.find(key);
  if (found == batches_.end())
    return nullptr;
  const auto open = std::ranges::find(found->second, owner, &open_batch::owner);
  return open == found->second.end() ? nullptr : &*open;
}

void stage_guard::end_forward(forward_id number, batch_state becomes) {
  const auto ended = forwards_.extract(number.value);
  for (const auto& [key, owner] : ended->batches)
    if (auto* const open = find(key, owner))
      open->state = becomes;
}

/// Drops the notes about a request that ends.
void stage_guard::forget(request_token token, const open_request& open) {
  for (const auto& key : open.batches) {
    if (const auto found = batches_.find(key); found != batches_.end()) {
      std::erase_if(found->second, [&](const open_batch& x) { return x.owner == token; });
      if (found->second.empty())
        batches_.erase(found);
    }
    std::erase(held_[key.first], std::pair{token, key.second});
  }
  if (open.pull)
    if (const auto found = pulls_.find(*open.pull); found != pulls_.end() && found->second == token)
      pulls_.erase(found);
}

void stage_guard::breach(const std::string& what, guard_effects& effects) {
  broken_ = {errc::contract_broken, "stage '" + name_ + "' " + what};
  next_tick_.reset();
  effects.push_back(warning_effect{broken_->text});
  open_.erase_if([&](std::uint64_t token, const open_request&) {
    effects.push_back(failed_effect{{token}, *broken_});
    return true;
  });
  decided_.list.clear();
  dropped_.clear();
  forwards_.clear();
  batches_.clear();
  pulls_.clear();
  held_.clear();
  refused_pushes_ = refused_pulls_ = {};
  expired_.clear();
  assert(is_empty() && is_broken());
}

} // namespace troupe
