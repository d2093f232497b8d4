#include "actors/protocol/pipeline/part_flow.hpp"

#include "actors/protocol/mutation.hpp"

#include "fmt/format.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace troupe {

using part_kind = part_word::kind;

const char* to_string(part_word::kind which) {
  switch (which) {
  case part_word::kind::greet: return "greet";
  case part_word::kind::begin: return "begin";
  case part_word::kind::forward: return "forward";
  case part_word::kind::backward: return "backward";
  case part_word::kind::applied: return "applied";
  case part_word::kind::ready: return "ready";
  case part_word::kind::broken: return "broken";
  case part_word::kind::drop: return "drop";
  }
  return "unknown";
}

part_reaction part_reaction_to(errc code) {
  if (code == errc::fenced)
    return part_reaction::wait;
  // A server that restores a shard refuses what came before as rolled back.
  const bool passes =
    reaction_to(code) == reaction::retry || code == errc::rolled_back || code == errc::overloaded;
  return passes ? part_reaction::try_again : part_reaction::end_job;
}

part_flow::part_flow(const part_setup& setup) : setup_(setup) {
  assert(setup.part < setup.parts && setup.incarnation != 0);
}

std::uint32_t part_flow::kept_max(std::uint32_t micros) const {
  if (mutated(mutation::inputs_unbounded))
    return micros;
  return setup_.schedule.kept_max(setup_.part, setup_.parts, micros);
}

// -- lanes --------------------------------------------------------------------------------------

void part_flow::joined(part_side side, part_effects& out) {
  if (side == part_side::above) {
    assert(!is_first() && !above_.is_joined);
    above_.is_joined = true;
  } else {
    assert(!is_last() && !below_.is_joined);
    below_.is_joined = true;
    send(side, {.of = {setup_.incarnation, ++below_.meeting}}, out);
  }
  go_on(out);
}

void part_flow::lost(part_side side, part_effects& out) {
  if (side == part_side::above) {
    above_.is_joined = false;
    above_.told.reset();
  } else
    below_.is_joined = below_.is_ready = false;
  if (side == part_side::above ? open_.has_value() : needs_below())
    if (!mutated(mutation::attempt_kept_at_loss))
      end_attempt(out);
  go_on(out);
}

result<void> part_flow::heard(part_side from, const part_word& what, part_effects& out) {
  if (from == part_side::above ? is_first() : is_last())
    return cannot_be(from, what, "there is no such part");
  auto fine = from == part_side::above ? heard_above(what, out) : heard_below(what, out);
  go_on(out);
  return fine;
}

result<void> part_flow::heard_above(const part_word& what, part_effects& out) {
  const bool is_present_one =
    open_ && (what.of == open_->name || mutated(mutation::old_attempt_taken));
  switch (what.what) {
  case part_kind::greet:
    if (what.of.number == 0 || what.of.incarnation == 0)
      return cannot_be(part_side::above, what, "number and incarnation are not 0");
    if (mutated(mutation::greet_unheeded) && above_.meeting.number != 0)
      return {};
    above_.meeting = what.of;
    above_.told.reset();
    if (open_)
      end_attempt(out);
    return {};
  case part_kind::begin:
    if (what.step.micros == 0 || what.of.number == 0 || what.of.incarnation == 0)
      return cannot_be(part_side::above, what, "numbers and incarnation are not 0");
    if (open_)
      end_attempt(out);
    if (above_.is_joined && is_whole()) // Else it hears `ready` later, and begins anew.
      begin(what.of, what.step, out);
    return {};
  case part_kind::drop:
    if (is_present_one)
      end_attempt(out);
    return {};
  case part_kind::forward:
    if (!is_present_one)
      return {};
    if (what.micro != open_->received || what.micro >= open_->step.micros)
      return cannot_be(part_side::above, what, "another micro-batch is next");
    ++open_->received;
    out.keep_input(what.micro);
    return {};
  default: return cannot_be(part_side::above, what, "only a part below says so");
  }
}

result<void> part_flow::heard_below(const part_word& what, part_effects& out) {
  const bool is_present_one =
    open_ && (what.of == open_->name || mutated(mutation::old_attempt_taken));
  switch (what.what) {
  case part_kind::ready:
  case part_kind::broken:
    if (!below_.is_joined || what.of != part_attempt{setup_.incarnation, below_.meeting})
      return {}; // It answers an earlier greeting.
    below_.is_ready = what.what == part_kind::ready;
    if (needs_below() && !mutated(mutation::ready_goes_on)) {
      end_attempt(out);
      if (!mutated(mutation::drop_untold)) // The part above waits for this part, too.
        above_.told.reset();
    }
    return {};
  case part_kind::backward:
    if (!is_present_one)
      return {};
    if (what.micro != open_->gradients || what.micro >= open_->forwards)
      return cannot_be(part_side::below, what, "another micro-batch is next");
    ++open_->gradients;
    out.keep_gradient(what.micro);
    return {};
  case part_kind::applied:
    if (!is_present_one)
      return {};
    if (open_->gradients != open_->step.micros || open_->below_has_applied)
      return cannot_be(part_side::below, what, "it has not sent all gradients, or said so before");
    open_->below_has_applied = true;
    open_->loss = what.loss;
    return {};
  default: return cannot_be(part_side::below, what, "only a part above says so");
  }
}

failure part_flow::cannot_be(part_side from, const part_word& what, const std::string& why) const {
  return {errc::malformed, fmt::format("the part {} part {} sends {} of micro-batch {} in {}: {}",
                                       from == part_side::above ? "above" : "below", setup_.part,
                                       to_string(what.what), what.micro, what.of.number, why)};
}

void part_flow::send(part_side to, const part_word& what, part_effects& out) const {
  assert(to == part_side::above ? above_.is_joined : below_.is_joined);
  out.send(to, what);
}

/// Says whether the line is whole, when the part above does not know and this part has no attempt.
void part_flow::tell_above(part_effects& out) {
  const bool is_met = above_.is_joined && above_.meeting.number != 0;
  if (!is_met || open_ || above_.told == is_whole())
    return;
  above_.told = is_whole();
  send(part_side::above,
       {.what = is_whole() ? part_kind::ready : part_kind::broken, .of = above_.meeting}, out);
}

// -- the worker ---------------------------------------------------------------------------------

void part_flow::began(const part_step& step, part_effects& out) {
  assert(is_first() && !step_ && !open_ && step.micros > 0);
  step_ = step;
  go_on(out);
}

void part_flow::dropped(part_effects& out) {
  assert(is_first());
  step_.reset();
  if (open_)
    end_attempt(out);
}

// -- attempts -----------------------------------------------------------------------------------

void part_flow::begin(const part_attempt& name, const part_step& step, part_effects& out) {
  open_ = attempt{.name = name, .step = step};
  if (!is_last())
    send(part_side::below, {.what = part_kind::begin, .of = name, .step = step}, out);
  if (is_first()) {
    open_->has_values = true;
    open_->received = step.micros;
  } else
    out.pull(name, step);
}

/// Ends the attempt before it is done, also in the parts below.
void part_flow::end_attempt(part_effects& out) {
  out.drop(open_->name);
  if (needs_below() && below_.is_joined && !mutated(mutation::drop_unsaid))
    send(part_side::below, {.what = part_kind::drop, .of = open_->name}, out);
  if (is_first() && step_)
    out.say(fmt::format("a later part has lost batch {}: it begins anew{}", step_->batch.value,
                        is_whole() ? "" : " when the line is whole"));
  open_.reset();
}

void part_flow::go_on(part_effects& out) {
  const bool is_awaited = is_whole() || mutated(mutation::line_not_awaited);
  if (step_ && !open_ && is_awaited)
    begin({setup_.incarnation, ++attempts_}, *step_, out);
  compute(out);
  finish(out);
  tell_above(out);
}

/// Begins the next computation, if there is one.
void part_flow::compute(part_effects& out) {
  if (!open_ || !open_->has_values || computing_)
    return;
  const auto& at = *open_;
  const auto gradients = is_last() ? at.forwards : at.gradients;
  const auto kept = at.forwards - at.backwards;
  assert(kept <= kept_max(at.step.micros));
  const bool can_forward = at.forwards < at.received && kept < kept_max(at.step.micros);
  const bool is_filled =
    setup_.schedule.order == micro_order::one_f_one_b || at.forwards == at.step.micros;
  if (is_filled && at.backwards < gradients)
    begin_backward(out);
  else if (can_forward)
    begin_forward(out);
}

void part_flow::begin_forward(part_effects& out) {
  assert(!computing_);
  computing_ = {open_->name, true};
  out.compute_forward(open_->forwards);
}

void part_flow::begin_backward(part_effects& out) {
  assert(!computing_);
  computing_ = {open_->name, false};
  const bool repeats = open_->backwards > 0 && mutated(mutation::micro_repeated);
  out.compute_backward(open_->backwards - (repeats ? 1 : 0));
}

bool part_flow::take_computation([[maybe_unused]] bool is_forward) {
  assert(computing_ && computing_->is_forward == is_forward);
  const auto was = std::exchange(computing_, std::nullopt);
  return is_present(was->of) || (open_ && mutated(mutation::old_result_counted));
}

void part_flow::computed_forward(part_effects& out) {
  if (take_computation(true)) {
    const auto micro = open_->forwards++;
    if (!is_last())
      send(part_side::below, {.what = part_kind::forward, .micro = micro, .of = open_->name}, out);
  }
  go_on(out);
}

void part_flow::computed_backward(double loss, part_effects& out) {
  if (take_computation(false)) {
    const auto micro = open_->backwards++;
    if (is_last())
      open_->loss += loss;
    if (!is_first())
      send(part_side::above, {.what = part_kind::backward, .micro = micro, .of = open_->name}, out);
  }
  go_on(out);
}

void part_flow::pulled(const part_attempt& of, part_effects& out) {
  if (!is_present(of))
    return;
  open_->has_values = true;
  go_on(out);
}

/// Ends the attempt if all is there, or takes the next step towards it.
void part_flow::finish(part_effects& out) {
  if (!open_)
    return;
  auto& at = *open_;
  const bool left_out = at.step.micros > 1 && mutated(mutation::micro_left_out);
  if (at.backwards + (left_out ? 1 : 0) < at.step.micros)
    return;
  if (!is_first() && !at.is_pushing && !at.has_applied) {
    at.is_pushing = true;
    out.push(at.name, at.step);
  }
  const bool has_applied = is_first() || at.has_applied || mutated(mutation::applied_before_push);
  const bool below_has = !needs_below() || mutated(mutation::part_below_not_awaited);
  if (!has_applied || !below_has)
    return;
  if (is_first()) {
    step_.reset();
    out.done(at.loss);
  } else {
    send(part_side::above, {.what = part_kind::applied, .of = at.name, .loss = at.loss}, out);
    out.drop(at.name);
  }
  open_.reset();
}

void part_flow::pushed(const part_attempt& of, part_effects& out) {
  if (!is_present(of) && !(open_ && mutated(mutation::old_answer_counted)))
    return;
  open_->has_applied = true;
  open_->is_pushing = false;
  go_on(out);
}

void part_flow::failed(const part_attempt& of, errc why, time_point now) {
  assert(part_reaction_to(why) != part_reaction::end_job);
  if (is_present(of) && part_reaction_to(why) == part_reaction::try_again)
    open_->retry_at = now + part_retry_pause;
}

void part_flow::tick(time_point now, part_effects& out) {
  if (!open_ || !open_->retry_at || now < *open_->retry_at)
    return;
  open_->retry_at.reset();
  if (open_->is_pushing)
    out.push(open_->name, open_->step);
  else if (!open_->has_values)
    out.pull(open_->name, open_->step);
}

} // namespace troupe
