#include "actors/protocol/channel/channel_hub.hpp"

#include "actors/protocol/mutation.hpp"
#include "actors/protocol/process_name.hpp"

#include "fmt/format.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <type_traits>
#include <utility>
#include <variant>

namespace troupe {

namespace {

/// A wait for credit that people are told of.
constexpr std::chrono::seconds credit_wait_told{1};
/// An accepted link whose first message is later than this is closed.
constexpr std::chrono::seconds channel_open_timeout{5};

member_id lane_member_of(const member_id& who) { return {who.role, who.index, {}}; }

std::string lane_end_name(const member_id& who) { return to_string(process_of(who)); }

std::uint64_t parcel_bytes(const parcel_message& what) {
  std::uint64_t bytes = what.head.size();
  for (const auto& each : what.tensors)
    bytes += each.count * sizeof(float);
  return bytes;
}

} // namespace

channel_hub::channel_hub(const member_id& self, std::vector<channel_end> ends)
    : self_(self), ends_(std::move(ends)) {
  for (std::size_t end = 0; end < ends_.size(); ++end)
    for (std::uint32_t peer = 0; peer < ends_[end].peers.size(); ++peer)
      if (ends_[end].sends)
        senders_.try_emplace({end, peer});
      else
        receivers_.try_emplace({end, peer});
}

// -- inbox --------------------------------------------------------------------------------------

void channel_hub::push(channel_event what, channel_effects& out) {
  const bool was_empty = inbox_.empty();
  inbox_.push_back(std::move(what));
  if (was_empty)
    out.wake();
}

/// Takes back an event that the program has not seen.
void channel_hub::withdraw(const lane_key& key, channel_event::kind what) {
  std::erase_if(inbox_, [&](const channel_event& x) {
    return x.end == key.end && x.peer == key.peer && x.what == what;
  });
}

std::optional<channel_event> channel_hub::next() {
  while (!inbox_.empty()) {
    channel_event event = std::move(inbox_.front());
    inbox_.pop_front();
    const lane_key key{event.end, event.peer};
    if (!sends(key)) {
      auto& lane = receivers_.at(key);
      if (event.what == channel_event::kind::joined && lane.present
          && lane.present->number == event.session)
        lane.present->is_heard = true;
      return event;
    }
    auto& lane = senders_.at(key);
    if (event.what == channel_event::kind::joined) {
      assert(lane.present && lane.present->number == event.session); // Else it was withdrawn.
      lane.present->is_heard = true;
      if (owes_writable(key, lane))
        inbox_.push_back(
          {channel_event::kind::writable, key.end, key.peer, lane.present->number, {}});
    }
    if (event.what != channel_event::kind::writable)
      return event;
    lane.has_writable = false;
    if (has_room(key, lane) || mutated(mutation::writable_without_room))
      return event;
    lane.is_owed_writable = true; // The program has used up the credit meanwhile.
  }
  return std::nullopt;
}

// -- links --------------------------------------------------------------------------------------

/// Closes a link and forgets it. Its lane is the caller's matter.
void channel_hub::drop(lane_link link, channel_effects& out) {
  links_.erase(link);
  out.close(link);
}

void channel_hub::accepted(lane_link link, const member_id& from, time_point now) {
  const bool is_new = links_.try_emplace(link, link_state{std::nullopt, from, now}).second;
  assert(is_new && link.value <= links_made_);
  static_cast<void>(is_new);
}

void channel_hub::received(lane_link link, channel_message what, time_point now,
                           channel_effects& out) {
  const auto found = links_.find(link);
  if (found == links_.end())
    return; // It was closed here, and this message was on its way.
  const auto lane = found->second.lane;
  if (auto* const open = std::get_if<channel_open>(&what); open != nullptr && !lane)
    return hear_open(link, found->second, *open, out);
  if (auto* const parcel = std::get_if<parcel_message>(&what);
      parcel != nullptr && lane && !sends(*lane))
    return hear_parcel(*lane, link, std::move(*parcel), now, out);
  if (auto* const taken = std::get_if<parcels_taken>(&what);
      taken != nullptr && lane && sends(*lane))
    return hear_taken(*lane, link, *taken, now, out);
  const auto state = found->second; // A message that this end of a lane never takes.
  drop(link, out);
  end_link(link, state, now, out);
}

void channel_hub::closed(lane_link link, time_point now, channel_effects& out,
                         const std::optional<failure>& refused) {
  const auto found = links_.find(link);
  if (found == links_.end())
    return;
  const auto state = found->second;
  links_.erase(found);
  if (refused && state.lane && sends(*state.lane)) {
    auto& lane = senders_.at(*state.lane);
    lane.refused_by = lane.opening && lane.opening->link == link ? lane.opening->to
                      : lane.present                             ? lane.present->to
                                                                 : member_id{};
    out.fail(*refused);
  }
  end_link(link, state, now, out);
}

/// Ends what a link carried. The link is forgotten already.
void channel_hub::end_link(lane_link link, const link_state& what, time_point now,
                           channel_effects& out) {
  if (!what.lane)
    return;
  if (!sends(*what.lane)) {
    auto& lane = receivers_.at(*what.lane);
    if (lane.opening && lane.opening->link == link)
      lane.opening.reset();
    else if (lane.present && lane.present->link == link)
      end_receiving(*what.lane, lane, out);
    return;
  }
  auto& lane = senders_.at(*what.lane);
  if (lane.opening && lane.opening->link == link) {
    lane.opening.reset();
    lane.pause.begin(now);
  } else if (lane.present && lane.present->link == link) {
    if (now - lane.present->since >= reconnect_pause::greatest)
      lane.pause.reset();
    end_sending(*what.lane, lane, now, out);
    lane.pause.begin(now);
  }
}

std::optional<channel_hub::lane_key> channel_hub::lane_of(lane_link link) const {
  const auto found = links_.find(link);
  if (found == links_.end() || !found->second.lane)
    return std::nullopt;
  const auto carries = [&](const auto& lane) { return lane.present && lane.present->link == link; };
  const auto& key = *found->second.lane;
  const bool is_present = sends(key) ? carries(senders_.at(key)) : carries(receivers_.at(key));
  return is_present ? std::optional{key} : std::nullopt;
}

void channel_hub::tick(time_point now, channel_effects& out) {
  for (auto& [key, lane] : senders_) {
    connect_if_due(key, lane, now, out);
    tell_of_wait(key, lane, now, out);
  }
  for (auto& [key, lane] : receivers_)
    if (lane.present && lane.present->told != lane.present->taken)
      tell_taken(*lane.present, out);
  std::vector<lane_link> silent;
  for (const auto& [link, state] : links_)
    if (!state.lane && now - state.since >= channel_open_timeout)
      silent.push_back(link);
  for (const auto link : silent)
    drop(link, out);
}

// -- sending side -------------------------------------------------------------------------------

void channel_hub::listed(std::span<const member_address> all, time_point now,
                         channel_effects& out) {
  std::map<member_id, const member_address*> found;
  for (const auto& each : all)
    if (!each.address.empty())
      found.insert_or_assign(lane_member_of(each.member), &each);
  for (auto& [key, lane] : senders_) {
    const auto at = found.find(lane_member_of(peer_of(key)));
    list(key, lane, at == found.end() ? nullptr : at->second, now, out);
  }
}

void channel_hub::list(const lane_key& key, sending_lane& lane, const member_address* found,
                       time_point now, channel_effects& out) {
  if (found == nullptr)
    lane.listed.reset();
  else
    lane.listed = *found;
  if (lane.opening && (!lane.listed || lane.opening->to != lane.listed->member)) {
    drop(lane.opening->link, out);
    lane.opening.reset();
  }
  if (lane.listed && lane.tried != lane.listed->member)
    lane.pause.reset();
  connect_if_due(key, lane, now, out);
}

void channel_hub::connect_if_due(const lane_key& key, sending_lane& lane, time_point now,
                                 channel_effects& out) {
  if (!lane.listed || lane.opening || lane.refused_by == lane.listed->member
      || (lane.present && lane.present->to == lane.listed->member) || !lane.pause.is_over(now))
    return;
  if (mutated(mutation::not_connected_again) && lane.tried == lane.listed->member)
    return;
  const auto link = new_link();
  lane.tried = lane.listed->member;
  lane.opening = {link, lane.listed->member, 0};
  links_[link] = {key, {}, now};
  out.connect(link, *lane.listed);
}

void channel_hub::opened(lane_link link, channel_effects& out) {
  const auto found = links_.find(link);
  if (found == links_.end() || !found->second.lane || !sends(*found->second.lane))
    return;
  auto& lane = senders_.at(*found->second.lane);
  if (!lane.opening || lane.opening->link != link || lane.opening->session != 0)
    return;
  lane.opening->session = ++sessions_;
  const auto& end = ends_[found->second.lane->end];
  out.send(link, channel_open{end.channel, lane.opening->session, end.head, end.window});
}

void channel_hub::hear_taken(const lane_key& key, lane_link link, const parcels_taken& what,
                             time_point now, channel_effects& out) {
  auto& lane = senders_.at(key);
  const bool begins = lane.opening && lane.opening->link == link;
  if (!begins && !lane.present)
    return;
  const auto session = begins ? lane.opening->session : lane.present->number;
  if (session == 0 || (what.session != session && !mutated(mutation::old_credit_counted)))
    return;
  const std::uint64_t least = begins ? 0 : lane.present->taken;
  const std::uint64_t greatest = begins ? 0 : lane.present->sent;
  if (what.count < least || what.count > greatest) {
    const auto state = links_.at(link);
    drop(link, out);
    return end_link(link, state, now, out);
  }
  if (begins)
    return begin_sending(key, lane, now, out);
  while (lane.present->taken < what.count) {
    ++lane.present->taken;
    lane.present->bytes_open -= lane.present->bytes.front();
    lane.present->bytes.pop_front();
  }
  if (what.count == lane.present->sent)
    end_told_wait(key, lane, out); // A receiver that is slow again and again is told of once.
  if (!has_room(key, lane))
    return;
  stop_waiting(lane, now);
  if (owes_writable(key, lane))
    push({channel_event::kind::writable, key.end, key.peer, session, {}}, out);
}

/// Begins the session that the receiver accepted; one with an earlier incarnation ends.
void channel_hub::begin_sending(const lane_key& key, sending_lane& lane, time_point now,
                                channel_effects& out) {
  if (lane.present) {
    if (mutated(mutation::old_credit_counted))
      out.close(lane.present->link);
    else
      drop(lane.present->link, out);
    end_sending(key, lane, now, out);
  }
  lane.present = {lane.opening->link, lane.opening->to, lane.opening->session, now};
  lane.opening.reset();
  push({channel_event::kind::joined, key.end, key.peer, lane.present->number, {}}, out);
}

/// Ends the session. Its link is forgotten already.
void channel_hub::end_sending(const lane_key& key, sending_lane& lane, time_point now,
                              channel_effects& out) {
  stop_waiting(lane, now);
  end_told_wait(key, lane, out);
  const auto ended = *std::exchange(lane.present, std::nullopt);
  lane.counts.lost += mutated(mutation::lost_not_counted) ? 0 : ended.sent - ended.taken;
  if (lane.has_writable) {
    withdraw(key, channel_event::kind::writable);
    lane.has_writable = false;
    lane.is_owed_writable = true;
  }
  if (ended.is_heard)
    push({channel_event::kind::lost, key.end, key.peer, ended.number, {}}, out);
  else
    withdraw(key, channel_event::kind::joined);
}

bool channel_hub::has_room(const lane_key& key, const sending_lane& lane) const {
  if (!lane.present || !lane.present->is_heard)
    return false;
  const auto& end = ends_[key.end];
  return (lane.present->sent - lane.present->taken < end.window
          || mutated(mutation::credit_ignored))
         && (lane.present->bytes_open < end.bytes_max || mutated(mutation::bytes_ignored));
}

/// Returns true if `writable` has to be put into the inbox; notes that it will be there.
bool channel_hub::owes_writable(const lane_key& key, sending_lane& lane) {
  if (!lane.is_owed_writable || !has_room(key, lane) || mutated(mutation::writable_forgotten))
    return false;
  lane.is_owed_writable = false;
  return !std::exchange(lane.has_writable, true);
}

void channel_hub::stop_waiting(sending_lane& lane, time_point now) {
  if (!lane.waits_since)
    return;
  const auto wait = std::chrono::duration_cast<std::chrono::microseconds>(now - *lane.waits_since);
  lane.counts.longest_wait = std::max(lane.counts.longest_wait, wait);
  lane.waits_since.reset();
}

/// Tells that a wait that people were told of is over.
void channel_hub::end_told_wait(const lane_key& key, sending_lane& lane, channel_effects& out) {
  if (std::exchange(lane.is_wait_told, false))
    out.waits(key.end, key.peer, "");
}

void channel_hub::tell_of_wait(const lane_key& key, sending_lane& lane, time_point now,
                               channel_effects& out) {
  if (!lane.waits_since || lane.is_wait_told || now - *lane.waits_since < credit_wait_told)
    return;
  lane.is_wait_told = true;
  const auto open = lane.present->sent - lane.present->taken;
  out.waits(key.end, key.peer,
            fmt::format("waits for {}: it has taken none of {} parcel{} for {} s",
                        lane_end_name(peer_of(key)), open, open == 1 ? "" : "s",
                        credit_wait_told.count()));
}

bool channel_hub::ready(std::size_t end, std::uint32_t peer, time_point now) {
  const lane_key key{end, peer};
  auto& lane = senders_.at(key);
  if (has_room(key, lane))
    return true;
  begin_wait(lane, now);
  return false;
}

/// Notes that the program wants to send, and has no credit.
void channel_hub::begin_wait(sending_lane& lane, time_point now) {
  if (lane.present && lane.present->is_heard && !lane.waits_since)
    lane.waits_since = now;
}

bool channel_hub::send(std::size_t end, std::uint32_t peer, std::vector<std::byte> head,
                       std::vector<parcel_tensor> tensors, time_point now, channel_effects& out) {
  const lane_key key{end, peer};
  auto& lane = senders_.at(key);
  if (!has_room(key, lane)) {
    lane.is_owed_writable = true;
    begin_wait(lane, now);
    return false;
  }
  parcel_message what{lane.present->number, ++lane.present->sent, std::move(head),
                      std::move(tensors)};
  const auto bytes = parcel_bytes(what);
  lane.present->bytes.push_back(bytes);
  lane.present->bytes_open += bytes;
  ++lane.counts.parcels;
  lane.counts.bytes += bytes;
  out.send(lane.present->link, std::move(what));
  return true;
}

// -- receiving side -----------------------------------------------------------------------------

/// Returns the lane of a link that opens, or why this member has no such lane: two builds or two
/// graphs differ.
result<channel_hub::lane_key> channel_hub::find_lane(const member_id& from,
                                                     const channel_open& what) const {
  const auto end = std::ranges::find_if(
    ends_, [&](const channel_end& x) { return !x.sends && x.channel == what.channel; });
  const auto sender = lane_end_name(from), receiver = lane_end_name(self_);
  const auto differ = [&](const std::string& how) {
    return failure{errc::contract_broken,
                   fmt::format("channel '{}' from {} to {}: {}; start both from one build with the "
                               "same options",
                               what.channel, sender, receiver, how)};
  };
  if (end == ends_.end())
    return differ("the receiver has no such channel");
  const auto peer = std::ranges::find(end->peers, lane_member_of(from), lane_member_of);
  if (peer == end->peers.end())
    return differ("the receiver has no such sender");
  if (end->head != what.head)
    return differ(
      fmt::format("the sender has heads {}, and the receiver {}", what.head, end->head));
  if (end->window != what.window)
    return differ(fmt::format("the sender has a window of {}, and the receiver of {}", what.window,
                              end->window));
  return lane_key{static_cast<std::size_t>(end - ends_.begin()),
                  static_cast<std::uint32_t>(peer - end->peers.begin())};
}

void channel_hub::hear_open(lane_link link, link_state& of, const channel_open& what,
                            channel_effects& out) {
  const auto key = find_lane(of.from, what);
  if (!key) {
    links_.erase(link);
    return out.refuse(link, key.error());
  }
  auto& lane = receivers_.at(*key);
  if (lane.newest_from == of.from && what.session <= lane.newest_session
      && !mutated(mutation::late_open_taken))
    return drop(link, out);
  lane.newest_from = of.from;
  lane.newest_session = what.session;
  of.lane = *key;
  if (lane.opening)
    drop(lane.opening->link, out);
  if (lane.present && !mutated(mutation::old_session_not_ended)) {
    if (mutated(mutation::old_parcel_taken))
      out.close(lane.present->link);
    else
      drop(lane.present->link, out);
    end_receiving(*key, lane, out);
  }
  lane.opening = {link, what.session};
  if (lane.parcels.empty() || mutated(mutation::accepted_too_soon))
    accept(*key, lane, out);
}

/// Begins the session that a link asked for.
void channel_hub::accept(const lane_key& key, receiving_lane& lane, channel_effects& out) {
  lane.present = {lane.opening->link, lane.opening->wire_session, ++sessions_};
  lane.opening.reset();
  push({channel_event::kind::joined, key.end, key.peer, lane.present->number, {}}, out);
  out.send(lane.present->link, parcels_taken{lane.present->wire_session, 0});
}

void channel_hub::hear_parcel(const lane_key& key, lane_link link, parcel_message what,
                              time_point now, channel_effects& out) {
  auto& lane = receivers_.at(key);
  const bool is_present = lane.present && lane.present->link == link;
  const bool is_old = !is_present || what.session != lane.present->wire_session;
  if (is_present && is_old)
    return;
  auto* const session = is_old && !mutated(mutation::old_parcel_taken) ? nullptr
                        : lane.present                                 ? &*lane.present
                                                                       : nullptr;
  const bool is_next =
    session != nullptr
    && (what.sequence == session->received + 1
        || (mutated(mutation::gap_not_noticed) && what.sequence > session->received));
  const auto& end = ends_[key.end];
  const bool fits = end.head_bytes == 0 || what.head.size() == end.head_bytes;
  if (!is_next || !fits || session->received - session->taken >= end.window) {
    const auto state = links_.at(link);
    drop(link, out);
    return end_link(link, state, now, out);
  }
  session->received = what.sequence;
  lane.parcels.push_back({session->number, what.sequence, parcel_bytes(what)});
  push({channel_event::kind::parcel, key.end, key.peer, session->number, std::move(what)}, out);
}

/// Ends the session. Its link is forgotten already.
void channel_hub::end_receiving(const lane_key& key, receiving_lane& lane, channel_effects& out) {
  const auto ended = *std::exchange(lane.present, std::nullopt);
  if (!ended.is_heard && ended.received == 0)
    return withdraw(key, channel_event::kind::joined);
  push({channel_event::kind::lost, key.end, key.peer, ended.number, {}}, out);
  if (mutated(mutation::lost_before_last) && inbox_.size() > 1)
    std::swap(inbox_.back(), inbox_[inbox_.size() - 2]);
}

void channel_hub::taken(const channel_event& which, channel_effects& out) {
  const lane_key key{which.end, which.peer};
  auto& lane = receivers_.at(key);
  assert(!lane.parcels.empty() && lane.parcels.front().session == which.session
         && lane.parcels.front().sequence == which.parcel.sequence);
  const auto bytes = lane.parcels.front().bytes;
  ++lane.counts.parcels;
  lane.counts.bytes += bytes;
  lane.parcels.pop_front();
  if (lane.present && lane.present->number == which.session) {
    auto& present = *lane.present;
    ++present.taken;
    present.bytes_untold += bytes;
    const auto& end = ends_[key.end];
    if (2 * (present.taken - present.told) >= end.window
        || 2 * present.bytes_untold >= end.bytes_max)
      tell_taken(present, out);
  }
  if (lane.parcels.empty() && lane.opening)
    accept(key, lane, out);
}

/// Gives credit for the parcels that were taken since it was given last.
void channel_hub::tell_taken(receiving_lane::session& present, channel_effects& out) {
  present.told = present.taken;
  present.bytes_untold = 0;
  const auto count = present.taken + (mutated(mutation::credit_twice) ? 1 : 0);
  out.send(present.link, parcels_taken{present.wire_session, count});
}

port_counts channel_hub::counts(std::size_t end, time_point now) const {
  port_counts all;
  const auto add = [&](const port_counts& one) {
    all.parcels += one.parcels;
    all.bytes += one.bytes;
    all.lost += one.lost;
    all.longest_wait = std::max(all.longest_wait, one.longest_wait);
  };
  for (std::uint32_t peer = 0; peer < ends_[end].peers.size(); ++peer) {
    const lane_key key{end, peer};
    if (!sends(key)) {
      add(receivers_.at(key).counts);
      continue;
    }
    const auto& lane = senders_.at(key);
    add(lane.counts);
    if (lane.waits_since)
      all.longest_wait =
        std::max(all.longest_wait,
                 std::chrono::duration_cast<std::chrono::microseconds>(now - *lane.waits_since));
  }
  return all;
}

} // namespace troupe
