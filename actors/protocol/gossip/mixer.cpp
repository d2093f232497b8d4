#include "actors/protocol/gossip/mixer.hpp"

#include "actors/protocol/gossip/each_step_mixer.hpp"
#include "actors/protocol/gossip/pairwise_mixer.hpp"
#include "actors/protocol/mutation.hpp"

#include "fmt/format.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace troupe {

namespace {

/// No job has as many steps.
constexpr std::uint64_t mixing_clock_max = std::uint64_t{1} << 62;

} // namespace

const char* to_string(peer_word::kind which) {
  switch (which) {
  case peer_word::kind::greet: return "greet";
  case peer_word::kind::values: return "values";
  case peer_word::kind::ask: return "ask";
  case peer_word::kind::accept: return "accept";
  case peer_word::kind::answer: return "answer";
  case peer_word::kind::busy: return "busy";
  case peer_word::kind::change: return "change";
  case peer_word::kind::release: return "release";
  case peer_word::kind::done: return "done";
  }
  return "unknown";
}

mixer::mixer(mixer_setup setup) : setup_(std::move(setup)), edges_(setup_.neighbours.size()) {}

void mixer::joined(std::uint32_t neighbour, time_point now, mixer_effects& out) {
  auto& edge = edges_.at(neighbour);
  assert(!edge.is_joined);
  edge.is_joined = true;
  ++edge.number;
  greet(neighbour, out);
  go_on(now, out);
}

void mixer::lost(std::uint32_t neighbour, time_point now, mixer_effects& out) {
  auto& edge = edges_.at(neighbour);
  const auto before = living();
  part(neighbour, out);
  edge.is_joined = false;
  if (before > 0 && living() == 0)
    out.say(fmt::format("no neighbour of peer {} is left: it goes on alone", setup_.self));
  go_on(now, out);
}

result<void> mixer::heard(std::uint32_t neighbour, const peer_word& what, time_point now,
                          mixer_effects& out) {
  if (what.clock > mixing_clock_max)
    return cannot_be(neighbour, what, "its clock is too large");
  result<void> fine;
  if (what.what == peer_word::kind::greet)
    fine = hear_greet(neighbour, what, out);
  else if (edges_.at(neighbour).is_met) // Else it is a word of an earlier meeting.
    fine = said(neighbour, what, now, out);
  go_on(now, out);
  return fine;
}

void mixer::tick(time_point now, mixer_effects& out) { go_on(now, out); }

std::uint32_t mixer::living() const {
  return static_cast<std::uint32_t>(std::ranges::count_if(edges_, &edge_state::is_met));
}

bool mixer::is_greeted(std::uint32_t neighbour) const {
  return edges_[neighbour].is_joined && edges_[neighbour].heard != 0;
}

failure mixer::cannot_be(std::uint32_t neighbour, const peer_word& what,
                         const std::string& why) const {
  return {errc::malformed, fmt::format("peer {} sends {} with clock {} and number {}: {}",
                                       setup_.neighbours[neighbour], to_string(what.what),
                                       what.clock, what.number, why)};
}

void mixer::greet(std::uint32_t neighbour, mixer_effects& out) {
  const auto& edge = edges_[neighbour];
  out.send(neighbour, {.clock = clock_,
                       .number = edge.number,
                       .echo = edge.heard,
                       .incarnation = setup_.incarnation});
}

result<void> mixer::hear_greet(std::uint32_t neighbour, const peer_word& what, mixer_effects& out) {
  auto& edge = edges_.at(neighbour);
  if (what.number == 0 || what.incarnation == 0)
    return cannot_be(neighbour, what, "number and incarnation are not 0");
  const bool is_new = (what.number != edge.heard || what.incarnation != edge.incarnation)
                      && !(edge.is_met && mutated(mutation::meeting_not_renewed));
  if (is_new) {
    part(neighbour, out);
    edge.heard = what.number;
    edge.incarnation = what.incarnation;
  }
  greeted(neighbour, what.clock);
  if (is_new && edge.is_joined)
    greet(neighbour, out);
  const bool is_echo = what.echo == edge.number || mutated(mutation::echo_ignored);
  if (edge.is_joined && !edge.is_met && is_echo) {
    edge.is_met = true;
    const bool is_same = edge.incarnation == edge.met_incarnation;
    edge.met_incarnation = edge.incarnation;
    met(neighbour, is_same || mutated(mutation::change_to_successor), out);
  }
  return {};
}

/// Forgets the present meeting with a neighbour.
void mixer::part(std::uint32_t neighbour, mixer_effects& out) {
  auto& edge = edges_[neighbour];
  edge.is_met = false;
  edge.heard = 0;
  parted(neighbour, out);
}

std::unique_ptr<mixer> make_mixer(mixer_setup setup) {
  if (setup.kind == mixing::each_step)
    return std::make_unique<each_step_mixer>(std::move(setup));
  return std::make_unique<pairwise_mixer>(std::move(setup));
}

} // namespace troupe
