// Checks of gossip: sums, weights, exchanges, answers, and the end of a history.
#include "cli/sim/gossip/gossip_world_parts.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace troupe::sim {
namespace {

/// Rounding of sums of some thousand numbers, each below 1e5.
constexpr double gossip_rounding = 1e-6;

bool is_near(double one, double other) { return std::abs(one - other) <= gossip_rounding; }

} // namespace

double gossip_world::spread() const {
  double least = std::numeric_limits<double>::max(), most = -least;
  for (const auto& each : peers_)
    if (each->is_alive) {
      least = std::min(least, each->copy);
      most = std::max(most, each->copy);
    }
  return most < least ? 0.0 : most - least;
}

/// Checks that a successor begins with a copy between those of the living peers.
void gossip_world::check_start(const peer& who) const {
  double least = std::numeric_limits<double>::max(), most = -least;
  for (const auto& each : peers_)
    if (each->is_alive) {
      least = std::min(least, each->copy);
      most = std::max(most, each->copy);
    }
  require(most < least
            || (who.copy >= least - gossip_rounding && who.copy <= most + gossip_rounding),
          "start: a successor's copy is none of a mean");
}

/// Checks a mixing step, which follows. An edge's ends have to take the same from each other.
void gossip_world::check_mix(peer& who, std::uint64_t clock, double own,
                             std::span<const peer_share> others) {
  require(clock == who.mix->clock(), "mix: of another clock than that of the peer");
  require(own >= -1e-12, "weights: that of the peer itself is below 0");
  double sum = own;
  for (const auto& each : others) {
    sum += each.weight;
    require(each.weight > 0.0, "weights: that of a neighbour is 0 or less");
    const auto found = who.kept.find({clock, each.neighbour});
    require(found != who.kept.end(), "mix: of values that are not kept");
    const auto& [theirs, incarnation] = found->second;
    const edge_clock edge{std::min(who.incarnation, incarnation),
                          std::max(who.incarnation, incarnation), clock};
    const auto other = transfers_.find(edge);
    if (other == transfers_.end()) {
      transfers_[edge] = {who.incarnation, each.weight, who.copy, theirs};
      unmatched_ += each.weight * (theirs - who.copy);
      continue;
    }
    const auto& before = other->second;
    require(before.taker != who.incarnation, "mix: twice at one clock");
    require(before.weight == each.weight, "weights: the ends of an edge use different ones");
    require(before.own == theirs && before.theirs == who.copy,
            "mix: the ends of an edge use different values");
    unmatched_ -= before.weight * (before.theirs - before.own);
    transfers_.erase(other);
  }
  require(std::abs(sum - 1.0) < 1e-12, "weights: they do not add up to one");
}

/// Checks the change that comes, which will be added.
void gossip_world::check_change(peer& who) {
  const auto& which = who.in_hand->change;
  require(which.to == who.incarnation, "change: it is for another incarnation");
  require(changes_.erase(which) == 1, "change: it is added twice");
  const auto answer = who.answers.find(which);
  require(answer != who.answers.end(), "change: there was no answer");
  const bool is_held = answer->second.is_open;
  require(!is_held || answer->second.mixes == who.mixes,
          "atomic: a peer that is taken mixes with another one");
  (is_held ? who.mixes : tally_.late_changes) += 1;
  who.answers.erase(answer);
}

void gossip_world::check_step(const peer& who) const {
  require(who.worker == peer::worker_state::pushes && who.open_steps == 1,
          "steps: one without a push, or two for one push");
}

void gossip_world::check_answer(const peer& who) const {
  require(who.worker == peer::worker_state::asks || who.worker == peer::worker_state::pushes,
          "answers: one without a request");
  require(who.open_steps == 0, "answers: a push is answered before its step");
}

/// Checks that no worker waits for an exchange longer than it may.
void gossip_world::check_waits() const {
  for (const auto& each : peers_)
    require(how_ != mixing::pairwise || !each->is_alive
              || each->worker != peer::worker_state::pushes
              || now_ <= std::max(each->pushed_at, each->paused_until) + mixing_patience
                           + gossip_tick_interval + 1ms,
            "waits: a worker waits for an exchange longer than it may");
}

/// Checks the clock that a peer has entered.
void gossip_world::check_clock(const peer& who) const {
  require(who.mix->clock() <= steps_, "clocks: peers turn without a step");
}

void gossip_world::check_hull(const peer& who) const {
  if (tally_.late_changes > 0) // The pair was not atomic.
    return;
  require(who.copy >= lowest_ - gossip_rounding && who.copy <= highest_ + gossip_rounding,
          "hull: a copy is outside of all first values and gradients");
}

/// Checks that copies add up to all first values and gradients, but for one-sided transfers.
void gossip_world::check_sum() const {
  double copies = left_, under_way = 0.0;
  for (const auto& each : peers_)
    copies += each->is_alive ? each->copy : 0.0;
  for (const auto& [which, value] : changes_)
    under_way += value;
  require(is_near(copies + under_way, given_ + unmatched_),
          "sum: " + std::to_string(copies + under_way) + " instead of "
            + std::to_string(given_ + unmatched_));
}

/// Checks one-sided transfers: each follows a fault.
void gossip_world::check_transfers() {
  for (const auto& [which, value] : changes_) {
    require(is_dead_[which.from] || is_dead_[which.to], "change: one between living peers is lost");
    ++tally_.changes_lost;
  }
  for (const auto& [edge, taken] : transfers_) {
    const auto giver = edge.one == taken.taker ? edge.other : edge.one;
    if (is_broken_[giver] || is_broken_[taken.taker]) {
      ++tally_.unmatched;
      continue;
    }
    const auto found =
      std::ranges::find(peers_, giver, [](const auto& x) { return x->incarnation; });
    require(found != peers_.end() && (*found)->mix->clock() == edge.clock,
            "mix: of one end of an edge alone, without a fault");
  }
}

void gossip_world::check_end() {
  for (const auto& each : peers_)
    if (is_traced() && each->is_alive)
      note("peer " + std::to_string(each->place) + " has " + std::to_string(each->copy) + ", clock "
           + std::to_string(each->mix->clock()) + ", worker in state "
           + std::to_string(static_cast<int>(each->worker)) + ", "
           + std::to_string(each->mix->living()) + " of "
           + std::to_string(graph_.neighbours_of[each->place].size()) + " neighbours");
  check_sum();
  for (const auto& each : peers_) {
    require(each->is_alive, "liveness: a peer does not start");
    require(each->worker == peer::worker_state::idle || !is_stopping_,
            "liveness: a request is not answered");
    require(each->mix->living() == graph_.neighbours_of[each->place].size(),
            "liveness: two neighbours do not meet");
    require(each->changes.empty(), "liveness: a change is not done");
    check_clock(*each);
  }
  require(is_stopping_, "consensus: the copies do not approach each other");
  check_transfers();
}

} // namespace troupe::sim
