// The simulated lanes of a pipeline. They fail as those of gossip do.
#include "cli/sim/pipeline/pipeline_world_parts.hpp"

#include <algorithm>
#include <utility>

namespace troupe::sim {

pipeline_world::lane& pipeline_world::lane_of(std::uint32_t from, std::uint32_t to) {
  return *std::ranges::find_if(lanes_, [&](const auto& x) { return x.from == from && x.to == to; });
}

/// Connects lanes without a session, and some lanes to a successor.
void pipeline_world::connect_lanes() {
  for (auto& each : lanes_) {
    const auto &from = *all_[each.from], &to = *all_[each.to];
    if (!from.is_alive || !to.is_alive)
      continue;
    const bool is_old = each.to_incarnation != to.incarnation && chance(0.2);
    const bool has_none = !each.sends && !each.is_opening;
    if ((has_none && chance(0.5)) || is_old || each.from_incarnation != from.incarnation)
      connect(each);
  }
}

void pipeline_world::connect(lane& which) {
  auto &from = *all_[which.from], &to = *all_[which.to];
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
    return post_to(from, now_ + pick_ms(1, 100), [this, &which, session](part& sender) {
      if (which.session == session)
        end_sending(which, sender);
    });
  }
  which.last = now_ + std::chrono::microseconds{pick(20, which.delay_us_max)};
  post_to(to, which.last, [this, &which, session](part& receiver) {
    if (which.session != session || !which.carries)
      return;
    if (std::exchange(which.receives, session) != 0)
      set_lane(receiver, which.side_of_sender(), false, false);
    set_lane(receiver, which.side_of_sender(), false, true);
    const auto heard = now_ + std::chrono::microseconds{pick(20, which.delay_us_max)};
    post_to(*all_[which.from], heard, [this, &which, session](part& sender) {
      if (which.session != session || !which.is_opening)
        return;
      end_sending(which, sender); // An earlier session, of a receiver that has died.
      which.sends = true;
      set_lane(sender, which.side_of_receiver(), true, true);
    });
  });
}

/// Ends the attempt or the session that a sender has of a lane.
void pipeline_world::end_sending(lane& which, part& sender) {
  which.is_opening = which.sends = false;
  if (sender.has_out[place_of(which.side_of_receiver())])
    set_lane(sender, which.side_of_receiver(), true, false);
}

/// Tells a part's flow of one of its two lanes to or from a neighbour.
void pipeline_world::set_lane(part& at, part_side side, bool is_out, bool is_up) {
  const auto i = place_of(side);
  (is_out ? at.has_out : at.has_in)[i] = is_up;
  if (is_traced())
    note("part " + std::to_string(at.place) + ": lane " + (is_out ? "to " : "from ")
         + std::to_string(side == part_side::above ? at.place - 1 : at.place + 1)
         + (is_up ? " joined" : " lost"));
  if (!is_up) {
    ++lines_[at.line].losses;
    at.flow->lost(side, *at.effects);
  } else if (at.has_in[i] && at.has_out[i])
    at.flow->joined(side, *at.effects);
}

/// Ends a session. Its ends hear of that at different times.
void pipeline_world::break_lane(lane& which, milliseconds sender_hears,
                                milliseconds receiver_hears) {
  which.carries = false;
  if (chance(0.5))
    which.dropped = which.session;
  const auto session = which.session;
  auto &from = *all_[which.from], &to = *all_[which.to];
  if (from.incarnation == which.from_incarnation)
    post_to(from, now_ + sender_hears, [this, &which, session](part& sender) {
      if (which.session == session)
        end_sending(which, sender);
    });
  if (to.incarnation == which.to_incarnation)
    post_to(to, now_ + receiver_hears, [this, &which, session](part& receiver) {
      if (which.receives != session)
        return;
      which.receives = 0;
      set_lane(receiver, which.side_of_sender(), false, false);
    });
}

/// Ends a session for one of its ends, and begins another at once. The other end does not notice.
void pipeline_world::renew_lane(const lane& which, bool at_sender) {
  auto& end = *all_[at_sender ? which.from : which.to];
  const auto side = at_sender ? which.side_of_receiver() : which.side_of_sender();
  const auto has = [side, at_sender](const part& who) {
    return (at_sender ? who.has_out : who.has_in)[place_of(side)];
  };
  if (!end.is_alive || !has(end))
    return;
  ++tally_.renewed;
  post_to(end, now_, [this, has, side, at_sender](part& who) {
    if (!has(who))
      return;
    set_lane(who, side, at_sender, false);
    set_lane(who, side, at_sender, true);
  });
}

/// Sends a word to a neighbour, with the result that is being reported.
void pipeline_world::carry(part& from, part_side side, const part_word& what) {
  const auto i = place_of(side);
  require(from.has_out[i] && from.has_in[i], "lanes: a word to a part that is not joined");
  parcel sent{what, 0};
  if (what.what == part_word::kind::forward || what.what == part_word::kind::backward) {
    require(from.reported && from.reported->micro == what.micro,
            "words: a result that is not there");
    sent.value = from.reported->result;
  }
  const auto to = side == part_side::above ? from.place - 1 : from.place + 1;
  auto& on = lane_of(from.place, to);
  if (!on.carries || !on.sends) {
    ++tally_.words_lost;
    return;
  }
  on.last = std::max(on.last, now_ + std::chrono::microseconds{pick(20, on.delay_us_max)});
  post_to(*all_[to], on.last, [this, &on, session = on.session, sent](part& receiver) {
    if (on.receives == session && session > on.dropped)
      deliver(receiver, on.side_of_sender(), sent);
    else
      ++tally_.words_lost;
  });
}

void pipeline_world::deliver(part& to, part_side from, const parcel& what) {
  using kind = part_word::kind;
  if (is_traced())
    note("part " + std::to_string(to.place) + " hears " + to_string(what.word.what) + " "
         + std::to_string(what.word.micro) + " of " + std::to_string(what.word.of.incarnation) + "."
         + std::to_string(what.word.of.number));
  const auto* const present = to.flow->present();
  if (what.word.what == kind::backward || what.word.what == kind::forward)
    tally_.old_words += present != nullptr && *present != what.word.of;
  to.in_hand = &what;
  const auto fine = to.flow->heard(from, what.word, *to.effects);
  to.in_hand = nullptr;
  require(static_cast<bool>(fine), "words: " + (fine ? "" : fine.error().text));
}

} // namespace troupe::sim
