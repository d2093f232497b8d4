// Handles requests and messages of a replica; replica_host_state.cpp handles its state and copies.
#include "actors/roles/server/replica_host.hpp"

#include "base/clock.hpp"
#include "serialization/payload.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

// -- requests --

void replica_host::ask(responder by, request what) {
  if (auto valid = check(what); !valid)
    return context_->answers.add(by, valid.error());
  const request_token token{next_token_++};
  auto& open =
    requests_.emplace(token.value, open_request{std::move(by), std::move(what), {}}).first->second;
  decide([&](replica_effects& effects) {
    if (!open.what.push)
      return pull(token, effects);
    auto push = std::make_shared<const push_request>(*std::move(open.what.push));
    open.what.push.reset();
    open.pushed = push->step;
    open.base_version = push->base_version;
    replica_->push(token, std::move(push), now(), effects);
  });
  if (admitted_.size() >= context_->options.apply_batch)
    end_gathering();
}

result<void> replica_host::check(const request& what) {
  if (!replica_ || !values_ || broken_)
    return {errc::not_ready, "the server does not have these partitions"};
  auto valid = what.push ? check(*what.push) : result<void>{};
  if (valid && what.pull)
    valid = values_->check(*what.pull);
  return valid;
}

result<void> replica_host::check(const push_request& push) {
  bytes_received_ += payload_bytes(push);
  auto valid = values_->check(push);
  if (valid && is_bsp_)
    valid = values_->check_finite(push);
  if (!valid && reaction_to(valid.error().code) != reaction::retry)
    replica_->count_refused();
  return valid;
}

void replica_host::pull(request_token token, replica_effects& effects) {
  const auto& what = *requests_.at(token.value).what.pull;
  replica_->pull(token, what, now(), effects);
}

// Carries out effects, each of which may append more. A pull follows when its request's push is
// done.
void replica_host::carry_out(replica_effects& effects) {
  for (std::size_t i = 0;;) {
    while (i < effects.size() && !broken_) {
      auto effect = std::move(effects[i++]);
      std::visit([&](auto& x) { run(x, effects); }, effect);
    }
    if (!admitted_.empty() || pulls_due_.empty() || broken_)
      return;
    const auto token = pulls_due_.front();
    pulls_due_.pop_front();
    pull(token, effects);
  }
}

void replica_host::run(step_effect& effect, replica_effects& more) {
  if (context_->options.apply_batch > 1 && !is_bsp_)
    return admit(effect, more);
  std::vector<const push_request*> pushes;
  for (const auto& push : effect.pushes)
    pushes.push_back(push.get());
  if (auto done = values_->apply(effect.what, pushes); !done)
    return replica_->discarded(done.error(), now(), more);
  replica_->applied(now(), more);
  record(pushes);
}

/// Adds a push that has passed all checks to the update buffer. It counts as applied, and it is
/// applied before any values are read.
void replica_host::admit(step_effect& effect, replica_effects& more) {
  auto& push = effect.pushes.front();
  if (auto valid = values_->admit(effect.what, *push); !valid)
    return replica_->discarded(valid.error(), now(), more);
  if (admitted_.empty())
    context_->self->send(context_->self, step_atom_v); // After the requests that wait already.
  gathered_.push_back(std::move(push));
  const push_request* const pushed = gathered_.back().get();
  admitted_.push_back({effect.what, pushed});
  replica_->applied(now(), more);
  record({&pushed, 1});
}

void replica_host::record(std::span<const push_request* const> pushes) {
  if (recorder_)
    recorder_->applied(now(), replica_->state()->version(), pushes, is_bsp_);
}

void replica_host::flush_record() {
  if (recorder_)
    recorder_->flush();
}

void replica_host::apply_admitted() {
  if (admitted_.empty())
    return;
  values_->apply_admitted(admitted_);
  admitted_.clear();
  gathered_.clear();
}

void replica_host::end_gathering() {
  apply_admitted();
  decide([](replica_effects&) {});
}

void replica_host::run(acknowledge_effect& effect, replica_effects&) {
  auto& open = requests_.at(effect.push.value);
  open.answer.pushed = effect.push_reply;
  if (recorder_ && effect.push_reply.duplicate && !is_bsp_)
    recorder_->repeated(now(), open.pushed, open.base_version);
  if (open.what.pull)
    pulls_due_.push_back(effect.push);
  else
    deliver(effect.push);
}

void replica_host::run(refuse_effect& effect, replica_effects&) {
  auto& open = requests_.at(effect.request.value);
  // If the push is done, its worker gets the push reply and then pulls again, alone.
  if (open.answer.pushed && reaction_to(effect.why.code) == reaction::retry)
    deliver(effect.request);
  else if (auto ended = requests_.extract(effect.request.value))
    context_->answers.add(ended.mapped().by, effect.why);
}

void replica_host::run(answer_effect& effect, replica_effects&) {
  apply_admitted();
  auto& open = requests_.at(effect.pull.value);
  open.answer.pulled = values_->read(*open.what.pull, effect.previous);
  open.answer.pulled->version = effect.version;
  if (recorder_ && !is_bsp_ && !open.what.pull->latest)
    recorder_->answered(open.what.pull->step, effect.version);
  bytes_sent_ += payload_bytes(*open.answer.pulled);
  deliver(effect.pull);
}

void replica_host::deliver(request_token token) {
  auto open = requests_.extract(token.value);
  open.mapped().answer.generation = generation_;
  context_->answers.add(open.mapped().by, std::move(open.mapped().answer));
}

void replica_host::run(cut_effect& effect, replica_effects&) {
  apply_admitted();
  checkpoint_cut_ = kept_at_ = effect.checkpoint;
  auto what = cut_of(effect.checkpoint, values_->pin(replica_->state()->partitions()));
  if (broken_)
    return;
  const auto during = loading_;
  context_->self->request(context_->storage, storage_timeout, write_atom_v, std::move(what))
    .then(
      [this, during, alive = std::weak_ptr{alive_}](const checkpoint_part& written) {
        if (alive.expired() || during != loading_)
          return; // Another generation has begun.
        part_ = written;
        context_->report();
      },
      [this, number = effect.checkpoint, alive = std::weak_ptr{alive_}](const caf::error& why) {
        if (alive.expired())
          return;
        checkpoint_failed_ = number;
        checkpoint_failure_ = from_caf(why).text;
        context_->report();
      });
}

void replica_host::tick() {
  free_if_unnamed();
  if (replica_ && !broken_)
    decide([this](replica_effects& effects) { replica_->tick(now(), effects); });
  flush_record();
}

void replica_host::fail_open(const failure& why) {
  for (auto& [unused, open] : std::exchange(requests_, {}))
    context_->answers.add(open.by, why);
  pulls_due_.clear();
}

// -- other replicas --

void replica_host::run(replica_send_effect& effect, replica_effects&) {
  context_->send(effect.to, {chain_, context_->options.self, std::move(effect.what)});
}

void replica_host::receive(const replica_message& what) {
  if (!replica_ || broken_)
    return;
  decide([&](replica_effects& effects) {
    std::visit([&](const auto& x) { take(what.from, x, effects); }, what.what);
  });
}

void replica_host::take(const member_id& from, const entry_message& what,
                        replica_effects& effects) {
  const bool fits = values_ && std::ranges::all_of(what.entry.pushes, [&](const auto& push) {
                      return static_cast<bool>(values_->check(*push));
                    });
  if (fits)
    replica_->receive(from, what, now(), effects);
}

void replica_host::take(const member_id& from, const committed_message& what,
                        replica_effects& effects) {
  replica_->receive(from, what, now(), effects);
}

void replica_host::take(const member_id& from, const joined_message& what,
                        replica_effects& effects) {
  replica_->receive(from, what, now(), effects);
  if (outgoing_ && outgoing_->to == from && outgoing_->config == what.config)
    outgoing_.reset();
}

void replica_host::take(const member_id& from, const copy_request& what, replica_effects&) {
  if (!outgoing_ || outgoing_->to != from || outgoing_->config != what.config) {
    const auto index = replica_->copy_for(from, what.config);
    if (!index && what.config > replica_->status().config)
      early_request_ = {from, what}; // Kept, as it is sent again only after copy_patience.
    if (!index)
      return;
    apply_admitted();
    const auto& state = *replica_->state();
    const copy_part like{
      .config = what.config, .index = *index, .image = {}, .clock_max = state.pull_clock_max()};
    auto held = what.held;
    std::sort(held.begin(), held.end());
    outgoing_ = outgoing_copy{from, what.config,
                              cut_into_parts(like, values_->pin(state.partitions()), held)};
  }
  if (what.part < outgoing_->parts.size())
    context_->send(from, {chain_, context_->options.self, outgoing_->parts[what.part]});
}

} // namespace troupe
