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

lane_world::end& gossip_world::end_at(std::uint32_t where) { return *peers_[where]; }

void gossip_world::joined(end& at, std::uint32_t neighbour) {
  auto& who = static_cast<peer&>(at);
  who.mix->joined(edge_of(who.place, neighbour), now_, *who.effects);
}

void gossip_world::lost(end& at, std::uint32_t neighbour) {
  auto& who = static_cast<peer&>(at);
  const auto edge = edge_of(who.place, neighbour);
  who.end_answers(edge);
  who.mix->lost(edge, now_, *who.effects);
}

void gossip_world::failed(const lane& which) {
  is_broken_[which.from_incarnation] = is_broken_[which.to_incarnation] = true;
}

/// Returns the place of a neighbour in a peer's list.
std::uint32_t gossip_world::edge_of(std::uint32_t at, std::uint32_t neighbour) const {
  const auto& all = graph_.neighbours_of[at];
  return static_cast<std::uint32_t>(std::ranges::find(all, neighbour) - all.begin());
}

/// Sends a word to a neighbour, with its values or its change.
void gossip_world::carry(peer& from, std::uint32_t neighbour, const peer_word& what) {
  const auto to = graph_.neighbours_of[from.place][neighbour];
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
  lane_world::send(from, to, [this, at = from.place, to, sent] { deliver(*peers_[to], at, sent); });
}

void gossip_world::deliver(peer& to, std::uint32_t from, const parcel& what) {
  const auto edge = edge_of(to.place, from);
  const auto clock = to.mix->clock();
  const bool was_met = to.mix->is_met(edge);
  if (is_traced())
    note("peer " + std::to_string(to.place) + " hears " + to_string(what.word.what) + " of "
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
