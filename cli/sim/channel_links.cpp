// The simulated links of channels, and the shells that own them.
#include "cli/sim/channel_world_parts.hpp"

#include <algorithm>
#include <utility>
#include <variant>

namespace troupe::sim {

// -- shell --------------------------------------------------------------------------------------

void channel_world::shell::connect(lane_link link, const member_address& to) {
  world_->connect(*member_, link, to);
}
void channel_world::shell::send(lane_link link, channel_message what) {
  world_->carry(*member_, link, std::move(what));
}
void channel_world::shell::refuse(lane_link /*link*/, const failure& why) {
  throw violation("refused: a link of the same program, " + why.text);
}
void channel_world::shell::close(lane_link link) { world_->close_end(*member_, link); }
void channel_world::shell::wake() {
  require(member_->hub->waiting() == 1, "wake: the inbox had events");
  member_->is_awake = true;
}
void channel_world::shell::waits(std::size_t end, std::uint32_t peer, const std::string& text) {
  auto& lane = member_->lane(end, peer);
  require(lane.is_wait_told == text.empty(), "waits: a wait is told twice, or ends twice");
  lane.is_wait_told = !text.empty();
  world_->tally_.waits += text.empty() ? 0 : 1;
  world_->note(world_->title_of(*member_, lane) + ": " + (text.empty() ? "waits no longer" : text));
}
void channel_world::shell::fail(const failure& why) { throw violation("failed: " + why.text); }

// -- links --------------------------------------------------------------------------------------

/// Returns the member at an end of a link, or null if that incarnation has died.
channel_world::member* channel_world::end_of(const link& which, bool acceptor) {
  const auto& end = which.ends[acceptor ? 1 : 0];
  auto& who = *members_[end.member];
  return who.is_alive && who.id.incarnation == end.incarnation ? &who : nullptr;
}

/// Lets something happen at an end of a link, after the messages that are on their way there.
void channel_world::post_on(std::size_t number, bool to_acceptor, std::function<void()> arrive) {
  auto& on = *links_[number];
  auto& end = on.ends[to_acceptor ? 1 : 0];
  end.last = std::max(end.last, now_ + std::chrono::microseconds{pick(20, on.delay_us_max)});
  at(end.last, std::move(arrive));
}

void channel_world::connect(member& from, lane_link as, const member_address& to) {
  const auto number = links_.size();
  auto made = std::make_unique<link>();
  made->ends[0] = {from.id.index, from.id.incarnation, as, true, false, {}};
  made->ends[1] = {to.member.index, to.member.incarnation, {}, false, false, {}};
  made->delay_us_max = pick(100, delay_us_max_);
  links_.push_back(std::move(made));
  from.links[as] = number;
  const bool fails = !quiet_ && chance(connect_failure_);
  tally_.failed_connects += fails ? 1 : 0;
  post_on(number, true, [this, number, fails] {
    auto& on = *links_[number];
    auto* const acceptor = end_of(on, true);
    if (fails || acceptor == nullptr || !on.carries) {
      on.carries = false;
      on.is_faulty = true;
      return hear_closed(number, false, now_ + milliseconds{pick(1, 100)});
    }
    auto& end = on.ends[1];
    end.hears = true;
    end.as = acceptor->hub->new_link();
    acceptor->links[end.as] = number;
    acceptor->hub->accepted(end.as, members_[on.ends[0].member]->id, now_);
    post_on(number, false, [this, number] {
      auto& opened = *links_[number];
      auto* const initiator = end_of(opened, false);
      if (initiator != nullptr && opened.ends[0].hears && !opened.ends[0].is_dropped)
        initiator->hub->opened(opened.ends[0].as, *initiator->effects);
    });
  });
}

/// Sends a message on a link.
void channel_world::carry(member& from, lane_link on_link, channel_message what) {
  const auto found = from.links.find(on_link);
  require(found != from.links.end(), "links: a message on a link that was never made");
  const auto number = found->second;
  auto& on = *links_[number];
  const bool to_acceptor = on.ends[0].member == from.id.index && on.ends[0].as == on_link;
  const auto& end = on.ends[to_acceptor ? 0 : 1];
  require(end.hears && !end.is_dropped, "links: a message on a link that was closed");
  if (const auto* const open = std::get_if<channel_open>(&what)) {
    std::uint32_t channel = 0;
    while (channels_[channel].title != open->channel)
      ++channel;
    on.session = {from.id.incarnation.value, channel, on.ends[1].member, open->session};
    require(sessions_.try_emplace(*on.session, session_record{number, 0, 0, 0}).second,
            "sessions: one number is used twice");
  }
  if (!on.carries)
    return;
  if (std::holds_alternative<parcel_message>(what) && !quiet_ && chance(loss_)) {
    // A link that loses a message also breaks, but perhaps later.
    on.is_faulty = true;
    ++tally_.messages_lost;
    at(now_ + milliseconds{pick(0, 400)}, [this, number] { break_link(*links_[number]); });
    return;
  }
  post_on(number, to_acceptor, [this, number, to_acceptor, what = std::move(what)]() mutable {
    deliver(number, to_acceptor, std::move(what));
  });
}

void channel_world::deliver(std::size_t number, bool to_acceptor, channel_message what) {
  auto& on = *links_[number];
  auto& end = on.ends[to_acceptor ? 1 : 0];
  auto* const who = end_of(on, to_acceptor);
  if (who == nullptr || !end.hears || (end.is_dropped && !is_careless_))
    return;
  tally_.heard_late += end.is_dropped ? 1 : 0;
  if (const auto* const taken = std::get_if<parcels_taken>(&what); taken && !end.is_dropped)
    sessions_.at(*on.session).known = taken->count;
  if (std::holds_alternative<channel_open>(what) && end_of(on, false) == nullptr)
    excuse_late_open(on);
  who->hub->received(end.as, std::move(what), now_, *who->effects);
  check_inbox(*who);
}

/// Excuses the present session of a lane. A receiver cannot know that a link comes too late, from a
/// sender that has died meanwhile, and takes it for that of a newer incarnation.
void channel_world::excuse_late_open(const link& late) {
  for (const auto& each : links_)
    if (each->session && each->session->channel == late.session->channel
        && each->ends[0].member == late.ends[0].member
        && each->ends[1].member == late.ends[1].member)
      each->is_faulty = true;
  ++tally_.late_opens;
}

/// Closes a link for its hub. The other end hears of it after all messages.
void channel_world::close_end(member& by, lane_link which) {
  const auto found = by.links.find(which);
  require(found != by.links.end(), "links: one is closed that was never made");
  const auto number = found->second;
  auto& on = *links_[number];
  const bool acceptor = on.ends[1].member == by.id.index && on.ends[1].as == which;
  on.ends[acceptor ? 1 : 0].is_dropped = true;
  on.carries = false;
  post_on(number, !acceptor, [this, number, acceptor] { hear_closed(number, !acceptor, now_); });
}

void channel_world::hear_closed(std::size_t number, bool acceptor, time_point when) {
  at(when, [this, number, acceptor] {
    auto& on = *links_[number];
    auto& end = on.ends[acceptor ? 1 : 0];
    auto* const who = end_of(on, acceptor);
    if (!std::exchange(end.hears, false) || who == nullptr)
      return;
    who->hub->closed(end.as, now_, *who->effects);
    check_inbox(*who);
  });
}

/// Breaks a link. Its ends hear of that at different times. Until then earlier messages arrive.
void channel_world::break_link(link& which) {
  which.is_faulty = true;
  if (!std::exchange(which.carries, false))
    return;
  const auto number = static_cast<std::size_t>(
    std::ranges::find(links_, &which, [](const auto& x) { return x.get(); }) - links_.begin());
  note("link " + std::to_string(number) + " breaks");
  for (const bool acceptor : {false, true})
    hear_closed(number, acceptor, now_ + (chance(0.7) ? pick_ms(0, 20) : pick_ms(20, 3000)));
}

void channel_world::break_a_link() {
  std::vector<link*> whole;
  for (const auto& each : links_)
    if (each->carries && each->ends[1].hears)
      whole.push_back(each.get());
  if (whole.empty())
    return;
  ++tally_.broken;
  break_link(*whole[pick(0, whole.size() - 1)]);
}

/// Holds up the messages to one end of a link.
void channel_world::stall_a_link() {
  if (links_.empty())
    return;
  auto& which =
    *links_[pick(links_.size() - std::min<std::size_t>(links_.size(), 20), links_.size() - 1)];
  auto& end = which.ends[pick(0, 1)];
  end.last = std::max(end.last, now_ + pick_ms(10, 2500));
  tally_.stalls += which.carries ? 1 : 0;
}

} // namespace troupe::sim
