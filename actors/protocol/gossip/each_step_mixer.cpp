#include "actors/protocol/gossip/each_step_mixer.hpp"

#include "actors/protocol/gossip/neighbour_graph.hpp"
#include "actors/protocol/mutation.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace troupe {

each_step_mixer::each_step_mixer(mixer_setup setup)
    : mixer(std::move(setup)), edges_(neighbours()) {}

void each_step_mixer::asked(time_point /*now*/, mixer_effects& out) {
  assert(!push_);
  is_computing_ = true;
  out.answer();
}

void each_step_mixer::pushed(std::uint64_t /*batch*/, bool goes_on, time_point now,
                             mixer_effects& out) {
  assert(!push_);
  push_ = open_push{goes_on};
  is_computing_ = false;
  go_on(now, out);
}

void each_step_mixer::parted(std::uint32_t neighbour, mixer_effects& out) {
  auto& edge = edges_[neighbour];
  edge.at.reset();
  edge.is_sent = false;
  if (const auto ahead = std::exchange(edge.ahead, std::nullopt))
    out.forget_values(neighbour, ahead->clock);
}

void each_step_mixer::greeted(std::uint32_t neighbour, std::uint64_t clock) {
  auto& at = edges_[neighbour].at;
  at = std::max(at.value_or(0), clock);
}

void each_step_mixer::met(std::uint32_t /*neighbour*/, bool /*is_same*/, mixer_effects& /*out*/) {}

result<void> each_step_mixer::said(std::uint32_t neighbour, const peer_word& what,
                                   time_point /*now*/, mixer_effects& out) {
  auto& edge = edges_[neighbour];
  if (what.what != peer_word::kind::values)
    return cannot_be(neighbour, what, "this peer mixes by each_step");
  if (what.degree == 0)
    return cannot_be(neighbour, what, "its degree is 0");
  if (what.clock <= edge.at.value_or(0))
    return cannot_be(neighbour, what, "its clock does not grow");
  if (edge.ahead)
    return cannot_be(neighbour, what, "it did not wait for this peer");
  edge.at = what.clock;
  const kept_values values{what.clock, what.degree};
  if (what.clock > clock_)
    edge.ahead = values;
  else if (what.clock == clock_ && (edge.is_sent || mutated(mutation::unshared_values_mixed)))
    edge.kept = values;
  else
    return {}; // The neighbour hears that this peer has left that clock out.
  out.keep_values(neighbour, what.clock);
  return {};
}

void each_step_mixer::go_on(time_point /*now*/, mixer_effects& out) {
  while (may_turn())
    turn(out);
  if (mutated(mutation::idle_turning) && !is_computing_ && !push_ && is_settled())
    turn(out);
}

/// Returns whether all neighbours have told of this clock or a later one.
bool each_step_mixer::is_settled() const {
  for (std::uint32_t i = 0; i < neighbours(); ++i)
    if (is_greeted(i) && edges_[i].at.value_or(0) < clock_)
      return false;
  return true;
}

std::uint64_t each_step_mixer::largest_clock() const {
  auto largest = clock_;
  for (const auto& each : edges_)
    largest = std::max(largest, each.at.value_or(0));
  return largest;
}

bool each_step_mixer::may_turn() const {
  if (!is_settled() && !mutated(mutation::neighbour_not_awaited))
    return false;
  const auto lead = largest_clock() - clock_;
  return push_ || lead > 1 || (lead == 1 && !is_computing_);
}

/// Mixes, takes a step if there is a gradient, and enters the next clock.
void each_step_mixer::turn(mixer_effects& out) {
  mix_kept(out);
  const auto push = std::exchange(push_, std::nullopt);
  if (push)
    out.step();
  enter(std::max(clock_ + 1, largest_clock()), out);
  if (push) {
    is_computing_ = push->goes_on;
    out.answer();
  }
}

void each_step_mixer::mix_kept(mixer_effects& out) const {
  std::vector<peer_share> others;
  double own = 1.0;
  for (std::uint32_t i = 0; i < neighbours(); ++i) {
    const auto& edge = edges_[i];
    if (!edge.kept) {
      if (mutated(mutation::lost_weight_not_kept) && degree_ > 0 && !edge.at)
        own -= edge_weight(degree_, degree_);
      continue;
    }
    const auto degree = mutated(mutation::degree_of_now) ? living() : degree_;
    others.push_back({i, edge_weight(degree, edge.kept->degree)});
    own -= others.back().weight;
  }
  if (!others.empty())
    out.mix(clock_, own, others);
}

void each_step_mixer::enter(std::uint64_t clock, mixer_effects& out) {
  clock_ = clock;
  degree_ = 0;
  for (std::uint32_t i = 0; i < neighbours(); ++i) {
    auto& edge = edges_[i];
    degree_ += edge.is_sent = is_greeted(i);
    edge.kept.reset();
    if (!edge.ahead || edge.ahead->clock > clock)
      continue;
    if (edge.ahead->clock == clock)
      edge.kept = edge.ahead;
    else
      out.forget_values(i, edge.ahead->clock);
    edge.ahead.reset();
  }
  for (std::uint32_t i = 0; i < neighbours(); ++i)
    if (edges_[i].is_sent)
      out.send(i, {.what = peer_word::kind::values, .degree = degree_, .clock = clock});
}

} // namespace troupe
