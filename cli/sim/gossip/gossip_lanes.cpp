// The simulated lanes of gossip, and the shells that own them.
#include "cli/sim/gossip/gossip_world_parts.hpp"

#include <algorithm>
#include <utility>

namespace troupe::sim {

// -- shell --------------------------------------------------------------------------------------

void gossip_world::shell::send(std::uint32_t neighbour, const peer_word& what) {
  world_->carry(*peer_, neighbour, what);
}

void gossip_world::shell::mix(std::uint64_t clock, double own, std::span<const peer_share> others) {
  world_->check_mix(*peer_, clock, own, others);
  double mixed = own * peer_->copy;
  for (const auto& each : others)
    mixed += each.weight * peer_->kept.at({clock, each.neighbour}).value;
  peer_->copy = mixed;
  std::erase_if(peer_->kept, [&](const auto& x) { return x.first.first == clock; });
  ++world_->tally_.mixes;
  world_->check_hull(*peer_);
}

void gossip_world::shell::keep_values(std::uint32_t neighbour, std::uint64_t clock) {
  require(peer_->in_hand != nullptr && peer_->in_hand_from == neighbour
            && peer_->in_hand->word.what == peer_word::kind::values,
          "keeps: no values came");
  peer_->kept[{clock, neighbour}] = {peer_->in_hand->value, peer_->met[neighbour]};
  const auto held =
    std::ranges::count_if(peer_->kept, [&](const auto& x) { return x.first.second == neighbour; });
  require(held <= 2, "keeps: more than the values of two clocks of a neighbour");
}

void gossip_world::shell::forget_values(std::uint32_t neighbour, std::uint64_t clock) {
  require(peer_->kept.erase({clock, neighbour}) == 1, "keeps: values that are not kept");
}

void gossip_world::shell::halve(std::uint32_t neighbour) {
  require(peer_->in_hand != nullptr && peer_->in_hand_from == neighbour
            && peer_->in_hand->word.what == peer_word::kind::answer,
          "keeps: no answer came");
  require(!peer_->changes.contains(neighbour), "keeps: a second change for a neighbour");
  const double d = (peer_->in_hand->value - peer_->copy) / 2;
  const change_name made{peer_->incarnation, peer_->met[neighbour], peer_->in_hand->word.number};
  peer_->copy += d;
  ++peer_->mixes;
  peer_->changes[neighbour] = {-d, made};
  require(world_->changes_.emplace(made, -d).second, "changes: two of one number");
  ++world_->tally_.halves;
  world_->check_hull(*peer_);
}

void gossip_world::shell::forget_change(std::uint32_t neighbour) {
  require(peer_->changes.erase(neighbour) == 1, "keeps: a change that is not kept");
}

void gossip_world::shell::add_change() {
  require(peer_->in_hand != nullptr && peer_->in_hand->word.what == peer_word::kind::change,
          "keeps: no change came");
  world_->check_change(*peer_);
  peer_->copy += peer_->in_hand->value;
  world_->check_hull(*peer_);
}

void gossip_world::shell::step() {
  world_->check_step(*peer_);
  --peer_->open_steps;
  peer_->copy += peer_->gradient;
  world_->given_ += peer_->gradient;
  (peer_->gradient < 0 ? world_->lowest_ : world_->highest_) += peer_->gradient;
  ++world_->steps_;
  ++world_->tally_.steps;
}

void gossip_world::shell::answer() {
  world_->check_answer(*peer_);
  world_->answered(*peer_);
}

void gossip_world::shell::say(const std::string& line) {
  require(peer_->mix->living() == 0, "says: a peer with neighbours says that it is alone");
  ++world_->tally_.alone;
  world_->note(line);
}

// -- lanes --------------------------------------------------------------------------------------

gossip_world::lane& gossip_world::lane_of(std::uint32_t from, std::uint32_t to) {
  return *std::ranges::find_if(lanes_, [&](const auto& x) { return x.from == from && x.to == to; });
}

/// Returns the place of a neighbour in a peer's list.
std::uint32_t gossip_world::place_of(std::uint32_t at, std::uint32_t neighbour) const {
  const auto& all = graph_.neighbours_of[at];
  return static_cast<std::uint32_t>(std::ranges::find(all, neighbour) - all.begin());
}

/// Connects lanes without a session, and some lanes to a successor.
void gossip_world::connect_lanes() {
  for (auto& each : lanes_) {
    const auto &from = *peers_[each.from], &to = *peers_[each.to];
    if (!from.is_alive || !to.is_alive)
      continue;
    const bool is_old = each.to_incarnation != to.incarnation && chance(0.2);
    const bool has_none = !each.sends && !each.is_opening;
    if ((has_none && chance(0.5)) || is_old || each.from_incarnation != from.incarnation)
      connect(each);
  }
}

void gossip_world::connect(lane& which) {
  auto &from = *peers_[which.from], &to = *peers_[which.to];
  which.sends = false;
  which.from_incarnation = from.incarnation;
  which.to_incarnation = to.incarnation;
  which.is_opening = which.carries = true;
  which.delay_us_max = pick(100, delay_us_max_);
  which.last = now_;
  const auto session = ++which.session;
  if (!quiet_ && chance(connect_failure_)) {
    ++tally_.failed_connects;
    which.carries = false;
    return post_to(from, now_ + pick_ms(1, 100), [this, &which, session](peer& sender) {
      if (which.session == session)
        end_sending(which, sender);
    });
  }
  which.last = now_ + std::chrono::microseconds{pick(20, which.delay_us_max)};
  post_to(to, which.last, [this, &which, session](peer& receiver) {
    if (which.session != session || !which.carries)
      return;
    if (std::exchange(which.receives, session) != 0)
      set_lane(receiver, which.from, false, false);
    set_lane(receiver, which.from, false, true);
    const auto heard = now_ + std::chrono::microseconds{pick(20, which.delay_us_max)};
    post_to(*peers_[which.from], heard, [this, &which, session](peer& sender) {
      if (which.session != session || !which.is_opening)
        return;
      end_sending(which, sender); // An earlier session, of a receiver that has died.
      which.sends = true;
      set_lane(sender, which.to, true, true);
    });
  });
}

/// Ends the attempt or the session that a sender has of a lane.
void gossip_world::end_sending(lane& which, peer& sender) {
  which.is_opening = which.sends = false;
  if (sender.has_out[place_of(sender.index, which.to)])
    set_lane(sender, which.to, true, false);
}

/// Tells a peer's mixer of one of its two lanes to or from a neighbour.
void gossip_world::set_lane(peer& at, std::uint32_t neighbour, bool is_out, bool is_up) {
  const auto edge = place_of(at.index, neighbour);
  (is_out ? at.has_out : at.has_in)[edge] = is_up;
  note("peer " + std::to_string(at.index) + ": lane " + (is_out ? "to " : "from ")
       + std::to_string(neighbour) + (is_up ? " joined" : " lost"));
  if (!is_up) {
    at.end_answers(edge);
    at.mix->lost(edge, now_, *at.effects);
  } else if (at.has_in[edge] && at.has_out[edge])
    at.mix->joined(edge, now_, *at.effects);
}

/// Ends a session. Its ends hear of that at different times.
void gossip_world::break_lane(lane& which, milliseconds sender_hears, milliseconds receiver_hears) {
  which.carries = false;
  if (chance(0.5))
    which.dropped = which.session;
  is_broken_[which.from_incarnation] = is_broken_[which.to_incarnation] = true;
  const auto session = which.session;
  auto &from = *peers_[which.from], &to = *peers_[which.to];
  if (from.incarnation == which.from_incarnation)
    post_to(from, now_ + sender_hears, [this, &which, session](peer& sender) {
      if (which.session == session)
        end_sending(which, sender);
    });
  if (to.incarnation == which.to_incarnation)
    post_to(to, now_ + receiver_hears, [this, &which, session](peer& receiver) {
      if (which.receives != session)
        return;
      which.receives = 0;
      set_lane(receiver, which.from, false, false);
    });
}

/// Ends a session for one of its ends, and begins another at once. The other end notices nothing.
void gossip_world::renew_lane(const lane& which, bool at_sender) {
  auto& end = *peers_[at_sender ? which.from : which.to];
  const auto other = at_sender ? which.to : which.from;
  const auto edge = place_of(end.index, other);
  if (!end.is_alive || !(at_sender ? end.has_out : end.has_in)[edge])
    return;
  ++tally_.renewed;
  is_broken_[which.from_incarnation] = is_broken_[which.to_incarnation] = true;
  post_to(end, now_, [this, other, edge, at_sender](peer& who) {
    if (!(at_sender ? who.has_out : who.has_in)[edge])
      return;
    set_lane(who, other, at_sender, false);
    set_lane(who, other, at_sender, true);
  });
}

/// Sends a word to a neighbour, with its values or its change.
void gossip_world::carry(peer& from, std::uint32_t neighbour, const peer_word& what) {
  require(from.has_out[neighbour] && from.has_in[neighbour],
          "lanes: a word to a neighbour that is not joined");
  const auto to = graph_.neighbours_of[from.index][neighbour];
  parcel sent{what, from.copy, {}};
  if (what.what == peer_word::kind::change) {
    const auto& kept = from.changes.at(neighbour);
    sent = {what, kept.value, kept.name};
    tally_.sent_again +=
      from.in_hand == nullptr || from.in_hand->word.what != peer_word::kind::answer;
  } else if (what.what == peer_word::kind::answer)
    from.answers[{from.met[neighbour], from.incarnation, what.number}] = {from.mixes, now_, true};
  else if (what.what == peer_word::kind::values)
    check_clock(from);
  tally_.busy += what.what == peer_word::kind::busy;
  tally_.released += what.what == peer_word::kind::release;
  auto& on = lane_of(from.index, to);
  if (!on.carries || !on.sends) {
    ++tally_.words_lost;
    return;
  }
  on.last = std::max(on.last, now_ + std::chrono::microseconds{pick(20, on.delay_us_max)});
  post_to(*peers_[to], on.last, [this, &on, session = on.session, sent](peer& receiver) {
    if (on.receives == session && session > on.dropped)
      deliver(receiver, on.from, sent);
    else
      ++tally_.words_lost;
  });
}

void gossip_world::deliver(peer& to, std::uint32_t from, const parcel& what) {
  const auto edge = place_of(to.index, from);
  const auto clock = to.mix->clock();
  const bool was_met = to.mix->is_met(edge);
  if (is_traced())
    note("peer " + std::to_string(to.index) + " hears " + to_string(what.word.what) + " of "
         + std::to_string(from) + ", clock " + std::to_string(what.word.clock) + ", number "
         + std::to_string(what.word.number) + ", echo " + std::to_string(what.word.echo));
  if (what.word.what == peer_word::kind::greet) {
    to.end_answers(edge);
    to.met[edge] = what.word.incarnation;
  }
  to.in_hand = &what;
  to.in_hand_from = edge;
  const auto fine = to.mix->heard(edge, what.word, now_, *to.effects);
  to.in_hand = nullptr;
  require(static_cast<bool>(fine), "words: " + (fine ? "" : fine.error().text));
  tally_.meetings += !was_met && to.mix->is_met(edge);
  tally_.jumps += to.mix->clock() > clock + 1;
}

} // namespace troupe::sim
