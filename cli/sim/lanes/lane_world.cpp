#include "cli/sim/lanes/lane_world.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace troupe::sim {

void lane_world::add_lane(std::uint32_t from, std::uint32_t to) {
  lanes_.emplace_back();
  lanes_.back().from = from;
  lanes_.back().to = to;
}

// -- processes ----------------------------------------------------------------------------------

void lane_world::post_to(const end& who, time_point when, std::function<void()> what) {
  at(when, [this, place = who.place, incarnation = who.incarnation, what = std::move(what)] {
    auto& present = end_at(place);
    if (!present.is_alive || present.incarnation != incarnation)
      return;
    present.inbox.push_back(what);
    drain(present);
  });
}

void lane_world::drain(end& who) {
  while (!who.inbox.empty() && now_ >= who.paused_until) {
    const auto next = std::move(who.inbox.front());
    who.inbox.pop_front();
    next();
  }
}

void lane_world::pause(end& who, milliseconds time) {
  ++tally_.pauses;
  who.paused_until = std::max(who.paused_until, now_ + time);
  at(who.paused_until, [this, place = who.place] {
    if (auto& present = end_at(place); present.is_alive)
      drain(present);
  });
}

void lane_world::break_lanes_of(const end& victim, bool is_quick) {
  const auto pick_delay = [&] { return is_quick ? pick_ms(1, 30) : pick_ms(50, 2000); };
  for (auto& each : lanes_)
    if (each.from == victim.place || each.to == victim.place) {
      const auto sender = pick_delay(), receiver = pick_delay();
      break_lane(each, sender, receiver);
      if (each.to == victim.place)
        each.receives = 0;
    }
}

// -- lanes --------------------------------------------------------------------------------------

void lane_world::connect_lanes() {
  for (auto& each : lanes_) {
    const auto &from = end_at(each.from), &to = end_at(each.to);
    if (!from.is_alive || !to.is_alive)
      continue;
    const bool is_old = each.to_incarnation != to.incarnation && chance(0.2);
    const bool has_none = !each.sends && !each.is_opening;
    if ((has_none && chance(0.5)) || is_old || each.from_incarnation != from.incarnation)
      connect(each);
  }
}

void lane_world::connect(lane& which) {
  const auto &from = end_at(which.from), &to = end_at(which.to);
  which.sends = false;
  which.from_incarnation = from.incarnation;
  which.to_incarnation = to.incarnation;
  which.is_opening = which.carries = true;
  which.delay_us_max = pick(100, faults_.delay_us_max);
  which.last = now_;
  const auto session = ++which.session;
  if (!quiet_ && chance(faults_.connect_failure)) {
    ++tally_.failed_connects;
    which.carries = false;
    return post_to(from, now_ + pick_ms(1, 100), [this, &which, session] {
      if (which.session == session)
        end_sending(which);
    });
  }
  which.last = now_ + std::chrono::microseconds{pick(20, which.delay_us_max)};
  post_to(to, which.last, [this, &which, session] {
    if (which.session != session || !which.carries)
      return;
    if (std::exchange(which.receives, session) != 0)
      set_lane(which, false, false);
    set_lane(which, false, true);
    const auto heard = now_ + std::chrono::microseconds{pick(20, which.delay_us_max)};
    post_to(end_at(which.from), heard, [this, &which, session] {
      if (which.session != session || !which.is_opening)
        return;
      end_sending(which); // An earlier session, of a receiver that has died.
      which.sends = true;
      set_lane(which, true, true);
    });
  });
}

/// Ends the attempt or the session that the sender has of a lane.
void lane_world::end_sending(lane& which) {
  which.is_opening = which.sends = false;
  if (end_at(which.from).reaches.contains(which.to))
    set_lane(which, true, false);
}

/// Tells one end of a lane that it is joined or lost.
void lane_world::set_lane(const lane& which, bool at_sender, bool is_up) {
  auto& at = end_at(at_sender ? which.from : which.to);
  const auto other = at_sender ? which.to : which.from;
  auto& all = at_sender ? at.reaches : at.hears;
  if (is_up)
    all.insert(other);
  else
    all.erase(other);
  if (is_traced())
    note("lane from " + std::to_string(which.from) + " to " + std::to_string(which.to)
         + (is_up ? " joined at " : " lost at ") + std::to_string(at.place));
  if (!is_up)
    lost(at, other);
  else if (at.is_joined(other))
    joined(at, other);
}

void lane_world::fail_lanes(double seconds) {
  auto& which = lanes_[pick(0, lanes_.size() - 1)];
  if (which.carries && chance(faults_.break_rate * seconds)) {
    ++tally_.broken;
    const auto hears = [&] { return chance(0.7) ? pick_ms(0, 20) : pick_ms(20, 1500); };
    const auto sender = hears(), receiver = hears();
    break_lane(which, sender, receiver);
  }
  if (chance(faults_.renew_rate * seconds))
    renew_lane(lanes_[pick(0, lanes_.size() - 1)], chance(0.5));
}

/// Ends a session. Its ends hear of that at different times.
void lane_world::break_lane(lane& which, milliseconds sender_hears, milliseconds receiver_hears) {
  which.carries = false;
  if (chance(0.5))
    which.dropped = which.session;
  failed(which);
  const auto session = which.session;
  const auto &from = end_at(which.from), &to = end_at(which.to);
  if (from.incarnation == which.from_incarnation)
    post_to(from, now_ + sender_hears, [this, &which, session] {
      if (which.session == session)
        end_sending(which);
    });
  if (to.incarnation == which.to_incarnation)
    post_to(to, now_ + receiver_hears, [this, &which, session] {
      if (which.receives != session)
        return;
      which.receives = 0;
      set_lane(which, false, false);
    });
}

/// Ends a session for one of its ends, and begins another at once. The other end does not notice.
void lane_world::renew_lane(const lane& which, bool at_sender) {
  const auto has_joined = [this, &which, at_sender] {
    return at_sender ? end_at(which.from).reaches.contains(which.to)
                     : end_at(which.to).hears.contains(which.from);
  };
  const auto& one = end_at(at_sender ? which.from : which.to);
  if (!one.is_alive || !has_joined())
    return;
  ++tally_.renewed;
  failed(which);
  post_to(one, now_, [this, &which, at_sender, has_joined] {
    if (!has_joined())
      return;
    set_lane(which, at_sender, false);
    set_lane(which, at_sender, true);
  });
}

void lane_world::send(const end& from, std::uint32_t to, std::function<void()> arrive) {
  require(from.is_joined(to), "lanes: a word to a neighbour that is not joined");
  auto& on = *std::ranges::find_if(
    lanes_, [&](const auto& x) { return x.from == from.place && x.to == to; });
  if (!on.carries || !on.sends) {
    ++tally_.words_lost;
    return;
  }
  on.last = std::max(on.last, now_ + std::chrono::microseconds{pick(20, on.delay_us_max)});
  post_to(end_at(to), on.last, [this, &on, session = on.session, arrive = std::move(arrive)] {
    if (on.receives == session && session > on.dropped)
      arrive();
    else
      ++tally_.words_lost;
  });
}

} // namespace troupe::sim
