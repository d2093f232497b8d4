// Checks of lanes: the events that programs see, the counts of ports, and the end of a history.
#include "cli/sim/channel_world_parts.hpp"

#include <algorithm>
#include <cstring>

namespace troupe::sim {

channel_world::session_name channel_world::session_of(const member& who,
                                                      const program_lane& lane) const {
  return {who.id.incarnation.value, lane.channel, lane.other, lane.session};
}

std::string channel_world::title_of(const member& who, const program_lane& lane) const {
  const auto here = std::to_string(who.id.index), there = std::to_string(lane.other);
  return channels_[lane.channel].title + " "
         + (lane.sends ? here + ">" + there : there + ">" + here) + " at " + here;
}

/// Checks a parcel that was just sent. Its bytes are not counted yet.
void channel_world::check_send(const session_record& session, const program_lane& lane) const {
  require(lane.session != 0, "events: a program sends before it heard of a session");
  require(session.sent - session.taken <= lane.window,
          "window: more parcels are sent and not taken than the window has");
  require(session.bytes_open < channels_[lane.channel].bytes_max,
          "bytes: a parcel is sent while enough bytes are under way");
}

void channel_world::check_joined(const member& who, program_lane& lane,
                                 const channel_event& event) {
  require(lane.session == 0, "events: a session begins within another one");
  require(event.session > lane.last_session, "events: a session's number does not grow");
  lane.session = lane.last_session = event.session;
  lane.from.reset();
  lane.place = 0;
  if (lane.sends)
    require(sessions_.contains(session_of(who, lane)), "events: joined without channel_open");
  tally_.sessions += lane.sends ? 1 : 0;
}

void channel_world::check_parcel(const member& who, program_lane& lane,
                                 const channel_event& event) {
  require(lane.session != 0 && event.session == lane.session,
          "events: a parcel comes outside of its session");
  parcel_name what;
  require(event.parcel.head.size() >= sizeof(what), "parcels: a head is too short");
  std::memcpy(&what, event.parcel.head.data(), sizeof(what));
  require(what.session.channel == lane.channel && what.session.to == who.id.index
            && what.from == lane.other,
          "parcels: a parcel comes on the wrong lane");
  if (!lane.from)
    lane.from = what.session;
  require(lane.from == what.session, "session: a parcel of another session is taken");
  auto& last = last_numbers_[{what.session.sender, lane.channel, who.id.index, 0}];
  require(what.number > last, "once: a parcel comes twice, or after a later one");
  last = what.number;
  require(what.place == ++lane.place, "order: a parcel of the session is left out");
}

void channel_world::check_lost(const member& who, program_lane& lane, const channel_event& event) {
  require(lane.session != 0 && event.session == lane.session,
          "events: a session ends that has not begun");
  if (lane.sends)
    require(links_[sessions_.at(session_of(who, lane)).link]->is_faulty,
            "sessions: one ends without a fault");
  lane.session = 0;
  ++tally_.lost;
}

void channel_world::check_writable(const member& who, program_lane& lane) {
  require(lane.is_refused, "writable: no send was refused");
  require(who.hub->ready(lane.end, lane.peer, now_), "writable: a send would be refused again");
  lane.is_refused = false;
  ++tally_.writable;
}

void channel_world::check_inbox(const member& who) const {
  std::size_t most = 0;
  for (const auto& each : who.lanes)
    most += 4 + (each.sends ? 0 : each.window);
  require(who.hub->waiting() <= most, "inbox: it holds more than the windows of its lanes");
}

/// Checks the counts of a member against those of its program. Requires: all is well.
void channel_world::check_counts(const member& who) const {
  for (std::size_t end = 0; end < who.hub->ends().size(); ++end) {
    port_counts truth;
    for (const auto& lane : who.lanes) {
      if (lane.end != end)
        continue;
      truth.parcels += lane.parcels;
      truth.bytes += lane.bytes;
      for (const auto& [of, session] : sessions_)
        if (lane.sends && of.sender == who.id.incarnation.value && of.channel == lane.channel
            && of.to == lane.other && of.session != lane.session)
          truth.lost += session.sent - session.known;
    }
    const auto counted = who.hub->counts(end, now_);
    require(counted.parcels == truth.parcels, "counts: of parcels");
    require(counted.bytes == truth.bytes, "counts: of bytes");
    require(counted.lost == truth.lost, "counts: of lost parcels: " + std::to_string(counted.lost)
                                          + " instead of " + std::to_string(truth.lost));
  }
}

bool channel_world::all_is_well() const {
  return std::ranges::all_of(members_, [&](const auto& who) {
    return who->is_alive && !who->in_hand && std::ranges::all_of(who->lanes, [&](auto& lane) {
             if (lane.session == 0 || lane.quota != 0 || lane.is_wait_told)
               return false;
             if (!lane.sends)
               return true;
             const auto& session = sessions_.at(session_of(*who, lane));
             return session.sent == session.taken && session.sent == session.known;
           });
  });
}

void channel_world::check_end() {
  if (!all_is_well())
    for (const auto& who : members_)
      for (const auto& lane : who->lanes)
        note(title_of(*who, lane) + (who->is_alive ? "" : " (dead)") + ": session "
             + std::to_string(lane.session) + ", " + std::to_string(lane.quota) + " to send"
             + (lane.is_refused ? ", refused" : "") + (lane.is_wait_told ? ", waits" : ""));
  require(all_is_well(), "liveness: a lane does not join, or a parcel is not taken");
  for (const auto& [of, session] : sessions_) {
    const auto missing = session.sent - session.taken;
    require(missing == 0 || links_[session.link]->is_faulty, "missing: a parcel without a fault");
    require(missing <= channels_[of.channel].window, "missing: more than the window of a lane");
    tally_.missing += missing;
  }
  for (const auto& who : members_)
    check_counts(*who);
}

} // namespace troupe::sim
