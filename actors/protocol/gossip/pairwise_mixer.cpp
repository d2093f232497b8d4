#include "actors/protocol/gossip/pairwise_mixer.hpp"

#include "actors/protocol/mutation.hpp"
#include "base/splitmix64.hpp"

#include <cassert>
#include <utility>

namespace troupe {

pairwise_mixer::pairwise_mixer(mixer_setup setup) : mixer(std::move(setup)), edges_(neighbours()) {}

void pairwise_mixer::asked(time_point /*now*/, mixer_effects& out) {
  assert(!due_);
  is_idle_ = false;
  out.answer();
}

void pairwise_mixer::pushed(std::uint64_t batch, bool goes_on, time_point now, mixer_effects& out) {
  assert(!due_);
  is_idle_ = !goes_on;
  out.step();
  due_ = batch;
  go_on(now, out);
}

void pairwise_mixer::parted(std::uint32_t neighbour, mixer_effects& /*out*/) {
  if (own_ && own_->neighbour == neighbour)
    own_.reset();
  if (taken_ && taken_->neighbour == neighbour)
    taken_.reset();
}

void pairwise_mixer::greeted(std::uint32_t /*neighbour*/, std::uint64_t /*clock*/) {}

void pairwise_mixer::met(std::uint32_t neighbour, bool is_same, mixer_effects& out) {
  auto& edge = edges_[neighbour];
  if (!is_same) {
    edge.asked = edge.added = 0;
    if (std::exchange(edge.kept, std::nullopt))
      out.forget_change(neighbour);
  }
  if (edge.kept)
    out.send(neighbour, {.what = peer_word::kind::change, .number = *edge.kept});
}

result<void> pairwise_mixer::said(std::uint32_t neighbour, const peer_word& what, time_point now,
                                  mixer_effects& out) {
  switch (what.what) {
  case peer_word::kind::ask: return hear_ask(neighbour, what, now, out);
  case peer_word::kind::accept: return hear_accept(neighbour, what, out);
  case peer_word::kind::answer: return hear_answer(neighbour, what, out);
  case peer_word::kind::change: return hear_change(neighbour, what, out);
  case peer_word::kind::done: return hear_done(neighbour, what, out);
  case peer_word::kind::busy:
    if (what.number > exchanges_)
      return cannot_be(neighbour, what, "this peer did not ask");
    if (own_ && own_->is(neighbour, what.number))
      own_.reset();
    return {};
  case peer_word::kind::release:
    if (what.number > edges_[neighbour].asked)
      return cannot_be(neighbour, what, "it did not ask");
    if (taken_ && taken_->is(neighbour, what.number))
      taken_.reset();
    return {};
  case peer_word::kind::greet:
  case peer_word::kind::values: break;
  }
  return cannot_be(neighbour, what, "this peer mixes pairwise");
}

result<void> pairwise_mixer::hear_ask(std::uint32_t neighbour, const peer_word& what,
                                      time_point now, mixer_effects& out) {
  auto& edge = edges_[neighbour];
  if (what.number <= edge.asked)
    return cannot_be(neighbour, what, "its number does not grow");
  edge.asked = what.number;
  if (own_ && own_->neighbour == neighbour && mutated(mutation::both_asked_wait))
    return {};
  const bool is_larger = setup().self > setup().neighbours[neighbour];
  if (own_ && own_->neighbour == neighbour && is_larger)
    own_.reset(); // The neighbour has asked, so it says busy.
  if ((own_ || taken_ || due_ || is_idle_) && !mutated(mutation::taken_answers)) {
    out.send(neighbour, {.what = peer_word::kind::busy, .number = what.number});
    return {};
  }
  taken_ = exchange{neighbour, what.number, now};
  out.send(neighbour, {.what = peer_word::kind::accept, .number = what.number});
  out.send(neighbour, {.what = peer_word::kind::answer, .number = what.number});
  return {};
}

result<void> pairwise_mixer::hear_accept(std::uint32_t neighbour, const peer_word& what,
                                         mixer_effects& out) {
  if (what.number > exchanges_)
    return cannot_be(neighbour, what, "this peer did not ask");
  if (own_ && own_->is(neighbour, what.number))
    own_->is_accepted = true;
  else
    out.send(neighbour, {.what = peer_word::kind::release, .number = what.number});
  return {};
}

result<void> pairwise_mixer::hear_answer(std::uint32_t neighbour, const peer_word& what,
                                         mixer_effects& out) {
  auto& edge = edges_[neighbour];
  if (what.number > exchanges_)
    return cannot_be(neighbour, what, "this peer did not ask");
  if (!own_ || !own_->is(neighbour, what.number))
    return {}; // It was released when it was accepted.
  if (edge.kept)
    return cannot_be(neighbour, what, "it did not say done to the last change");
  own_.reset();
  edge.kept = what.number;
  out.halve(neighbour);
  out.send(neighbour, {.what = peer_word::kind::change, .number = what.number});
  return {};
}

result<void> pairwise_mixer::hear_change(std::uint32_t neighbour, const peer_word& what,
                                         mixer_effects& out) {
  auto& edge = edges_[neighbour];
  if (what.number > edge.asked && !mutated(mutation::change_to_successor))
    return cannot_be(neighbour, what, "it did not ask");
  if (what.number > edge.added || mutated(mutation::change_added_twice)) {
    out.add_change();
    edge.added = what.number;
  }
  if (taken_ && taken_->is(neighbour, what.number) && !mutated(mutation::never_untaken))
    taken_.reset();
  out.send(neighbour, {.what = peer_word::kind::done, .number = what.number});
  return {};
}

result<void> pairwise_mixer::hear_done(std::uint32_t neighbour, const peer_word& what,
                                       mixer_effects& out) {
  auto& edge = edges_[neighbour];
  if (edge.kept != what.number)
    return cannot_be(neighbour, what, "no such change was sent");
  edge.kept.reset();
  out.forget_change(neighbour);
  return {};
}

/// Draws a neighbour of those that are met.
std::optional<std::uint32_t> pairwise_mixer::draw(std::uint64_t batch) const {
  if (living() == 0)
    return std::nullopt;
  auto left = splitmix64{splitmix64_of(setup().seed + splitmix64_step) ^ batch}.next() % living();
  for (std::uint32_t i = 0; i < neighbours(); ++i)
    if (is_met(i) && left-- == 0)
      return i;
  return std::nullopt;
}

void pairwise_mixer::begin(std::uint64_t batch, time_point now, mixer_effects& out) {
  const auto neighbour = draw(batch);
  if (!neighbour)
    return;
  own_ = exchange{*neighbour, ++exchanges_, now};
  out.send(*neighbour, {.what = peer_word::kind::ask, .number = exchanges_});
}

void pairwise_mixer::go_on(time_point now, mixer_effects& out) {
  if (own_ && !own_->is_accepted && now >= own_->since + mixing_patience
      && !mutated(mutation::both_asked_wait))
    own_.reset();
  if (!due_)
    return;
  const auto& open = own_ ? own_ : taken_;
  if (open && now < open->since + mixing_patience)
    return;
  const auto batch = *std::exchange(due_, std::nullopt);
  if (!open)
    begin(batch, now, out);
  out.answer();
}

} // namespace troupe
