// The simulated channels: members, programs, the coordinator's lists, faults, and the end.
#include "cli/sim/channel_world_parts.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace troupe::sim {
namespace {

constexpr time_point channel_faults_end = 6s, channel_quiet_end = 60s;
constexpr milliseconds channel_tick_interval = 50ms, channel_list_interval = 100ms;

} // namespace

const std::vector<minimum<channel_tally>> channel_world::minima{
  {"sessions", &channel_tally::sessions, 12},
  {"parcels taken", &channel_tally::parcels, 400},
  {"sends refused", &channel_tally::refused, 900},
  {"writable", &channel_tally::writable, 150},
  {"lost", &channel_tally::lost, 12},
  {"parcels missing", &channel_tally::missing, 10},
  {"members killed", &channel_tally::kills, 2.5},
  {"links broken", &channel_tally::broken, 4},
  {"links failed", &channel_tally::failed_connects, 1.7},
  {"messages lost", &channel_tally::messages_lost, 1.4},
  {"links stalled", &channel_tally::stalls, 1.2},
  {"hosts slow", &channel_tally::slow_hosts, 1.7},
  {"programs paused", &channel_tally::pauses, 2.2},
  {"heard after the end", &channel_tally::heard_late, 0.4},
  {"links of dead ones", &channel_tally::late_opens, 0.002},
  {"lists out of date", &channel_tally::old_lists, 7},
  {"lists with gaps", &channel_tally::partial_lists, 8},
  {"coordinators silent", &channel_tally::silences, 0.4},
  {"waits told", &channel_tally::waits, 1.3},
};

channel_world::channel_world(std::uint64_t seed, bool no_faults, trace_function trace)
    : world(seed, no_faults, std::move(trace)) {
  shape_ = pick(0, kinds.size() - 1);
  polls_ = chance(0.5);
  is_careless_ = chance(0.5);
  loss_ = intensity(0.02);
  kill_rate_ = intensity(3.0);
  break_rate_ = intensity(10.0);
  stall_rate_ = intensity(6.0);
  pause_rate_ = intensity(3.0);
  slow_rate_ = intensity(3.0);
  old_list_ = intensity(0.4);
  partial_list_ = intensity(0.5);
  silence_rate_ = intensity(1.0);
  connect_failure_ = intensity(0.5);
  delay_us_max_ = pick(200, chance(0.5) ? 2000 : 60'000);
  take_us_max_ = pick(10, chance(0.7) ? 3000 : 50'000);
  make_channels();
  for (std::uint32_t i = 0; i < members_.size(); ++i)
    start_member(i);
}

channel_world::~channel_world() = default;

// -- the program's graph ------------------------------------------------------------------------

void channel_world::make_channels() {
  const bool back = chance(0.4);
  if (shape_ == 0)
    make_spread(back);
  else if (shape_ == 1)
    make_pairs(back);
  else
    make_circle(back);
  for (auto& each : channels_) {
    each.window = static_cast<std::uint32_t>(pick(1, chance(0.5) ? 3 : 10));
    each.bytes_max = chance(0.5) ? lane_bytes_max : pick(1, 400);
  }
}

void channel_world::make_spread(bool back) {
  const auto senders = static_cast<std::uint32_t>(pick(2, 5));
  const auto receivers = static_cast<std::uint32_t>(pick(1, 4));
  members_.resize(senders + receivers);
  channels_.push_back({"a.out>b.in", 1, 1, {}});
  if (back)
    channels_.push_back({"b.out>a.in", 1, 1, {}});
  for (std::uint32_t from = 0; from < senders; ++from)
    for (std::uint32_t to = senders; to < senders + receivers; ++to) {
      channels_.front().lanes.emplace_back(from, to);
      if (back)
        channels_.back().lanes.emplace_back(to, from);
    }
}

void channel_world::make_pairs(bool back) {
  const auto count = static_cast<std::uint32_t>(pick(2, 4));
  members_.resize(2 * count);
  channels_.push_back({"a.out>b.in", 1, 1, {}});
  if (back)
    channels_.push_back({"b.out>a.in", 1, 1, {}});
  for (std::uint32_t i = 0; i < count; ++i) {
    channels_.front().lanes.emplace_back(i, count + i);
    if (back)
      channels_.back().lanes.emplace_back(count + i, i);
  }
}

void channel_world::make_circle(bool back) {
  const auto count = static_cast<std::uint32_t>(pick(2, 5));
  members_.resize(count);
  channels_.push_back({"a.next>a.last", 1, 1, {}});
  if (back)
    channels_.push_back({"a.last>a.next", 1, 1, {}});
  for (std::uint32_t i = 0; i < count; ++i) {
    channels_.front().lanes.emplace_back(i, (i + 1) % count);
    if (back)
      channels_.back().lanes.emplace_back((i + 1) % count, i);
  }
}

std::vector<channel_end> channel_world::ends_of(std::uint32_t index) const {
  std::vector<channel_end> ends;
  for (const auto& each : channels_)
    for (const bool sends : {true, false}) {
      channel_end end{each.title, sends ? "out" : "in", sends, "number", {}, each.window, 0,
                      each.bytes_max};
      for (const auto& [from, to] : each.lanes)
        if ((sends ? from : to) == index)
          end.peers.push_back(member_of(worker_id{sends ? to : from}));
      if (!end.peers.empty())
        ends.push_back(std::move(end));
    }
  return ends;
}

// -- members ------------------------------------------------------------------------------------

void channel_world::start_member(std::uint32_t index) {
  auto made = std::make_unique<member>();
  made->id = member_of(worker_id{index}, {++incarnations_});
  made->is_alive = true;
  made->effects = std::make_unique<shell>(*this, *made);
  const auto ends = ends_of(index);
  made->hub = std::make_unique<channel_hub>(made->id, ends);
  made->step_us_max = pick(200, 10'000);
  for (std::size_t end = 0; end < ends.size(); ++end)
    for (std::uint32_t peer = 0; peer < ends[end].peers.size(); ++peer) {
      program_lane lane;
      lane.end = end;
      lane.peer = peer;
      while (channels_[lane.channel].title != ends[end].channel)
        ++lane.channel;
      lane.other = ends[end].peers[peer].index;
      lane.sends = ends[end].sends;
      lane.window = ends[end].window;
      lane.quota = quiet_ && lane.sends ? 2 * lane.window + 3 : 0;
      made->lanes.push_back(lane);
    }
  members_[index] = std::move(made);
  note("member " + std::to_string(index) + " starts as " + std::to_string(incarnations_));
  program_step(*members_[index]);
}

/// Kills a member. The others hear of it soon, or only after seconds if its host is gone.
void channel_world::kill_member(member& victim, bool is_quick) {
  note("member " + std::to_string(victim.id.index) + " is killed");
  ++tally_.kills;
  victim.is_alive = false;
  victim.hub.reset();
  for (const auto& [as, number] : victim.links) {
    auto& on = *links_[number];
    on.is_faulty = true;
    on.carries = false;
    const bool accepted = on.ends[1].member == victim.id.index && on.ends[1].as == as;
    hear_closed(number, !accepted, now_ + (is_quick ? pick_ms(1, 30) : pick_ms(50, 4000)));
  }
  at(now_ + (chance(0.5) ? pick_ms(10, 200) : pick_ms(100, 3000)),
     [this, index = victim.id.index] { start_member(index); });
}

void channel_world::tick_members() {
  for (const auto& each : members_)
    if (each->is_alive)
      each->hub->tick(now_, *each->effects);
}

/// Runs the thread of a program for one step: one event at most, and perhaps sends.
void channel_world::program_step(member& who) {
  const auto again = [this, index = who.id.index, incarnation = who.id.incarnation] {
    auto& present = *members_[index];
    if (present.is_alive && present.id.incarnation == incarnation)
      program_step(present);
  };
  if (now_ < who.paused_until)
    return at(who.paused_until, again);
  if (who.in_hand)
    finish_taking(who);
  else if (who.is_awake) {
    if (auto event = who.hub->next())
      handle(who, std::move(*event));
    else
      who.is_awake = false;
  }
  for (auto& lane : who.lanes) {
    if (who.in_hand)
      break;
    if (std::exchange(lane.begins_quota, false))
      fill(who, lane, lane.quota); // Once; from then on after events alone.
    else if (lane.sends && !quiet_ && chance(polls_ ? 0.2 : 0.02))
      fill(who, lane, pick(1, 4));
  }
  check_inbox(who);
  at(now_ + std::chrono::microseconds{pick(20, who.in_hand ? take_us_max_ + 20 : who.step_us_max)},
     again);
}

void channel_world::handle(member& who, channel_event event) {
  auto& lane = who.lane(event.end, event.peer);
  const auto most = quiet_ ? lane.quota : pick(0, lane.window + 2);
  switch (event.what) {
  case channel_event::kind::joined:
    note(title_of(who, lane) + ": joined, session " + std::to_string(event.session));
    check_joined(who, lane, event);
    if (lane.sends)
      fill(who, lane, most);
    return;
  case channel_event::kind::lost:
    note(title_of(who, lane) + ": lost, session " + std::to_string(event.session));
    return check_lost(who, lane, event);
  case channel_event::kind::writable: check_writable(who, lane); return fill(who, lane, most);
  case channel_event::kind::parcel:
    check_parcel(who, lane, event);
    who.in_hand_bytes = event.parcel.head.size();
    for (const auto& each : event.parcel.tensors)
      who.in_hand_bytes += 4 * each.count;
    event.parcel.head = {}; // A program may move the parcel away.
    event.parcel.tensors = {};
    who.in_hand = std::move(event);
  }
}

void channel_world::finish_taking(member& who) {
  const auto event = *std::exchange(who.in_hand, std::nullopt);
  auto& lane = who.lane(event.end, event.peer);
  auto& session = sessions_.at(*lane.from);
  ++session.taken;
  session.bytes_open -= who.in_hand_bytes;
  ++lane.parcels;
  lane.bytes += who.in_hand_bytes;
  ++tally_.parcels;
  who.hub->taken(event, *who.effects);
}

/// Sends at most so many parcels, until one is refused.
void channel_world::fill(member& who, program_lane& lane, std::uint64_t most) {
  while (most-- > 0 && try_send(who, lane))
    if (lane.quota > 0)
      --lane.quota;
}

bool channel_world::try_send(member& who, program_lane& lane) {
  const auto present = session_of(who, lane);
  const auto found = sessions_.find(present);
  const parcel_name what{present, who.id.index,
                         found == sessions_.end() ? 0 : found->second.sent + 1, lane.parcels + 1};
  std::vector<std::byte> head(sizeof(what) + pick(0, 9));
  std::memcpy(head.data(), &what, sizeof(what));
  const auto floats = pick(0, 5);
  const auto bytes = head.size() + 4 * floats;
  const bool is_ready = who.hub->ready(lane.end, lane.peer, now_);
  const bool is_sent =
    who.hub->send(lane.end, lane.peer, std::move(head), {{nullptr, floats}}, now_, *who.effects);
  require(is_ready == is_sent, "ready: it does not say whether send() succeeds");
  if (!is_sent) {
    lane.is_refused = true;
    ++tally_.refused;
    return false;
  }
  ++lane.parcels;
  lane.bytes += bytes;
  require(found != sessions_.end(), "events: a program sends before it heard of a session");
  ++found->second.sent;
  check_send(found->second, lane);
  found->second.bytes_open += bytes;
  return true;
}

// -- the coordinator ----------------------------------------------------------------------------

void channel_world::publish() {
  if (now_ < silent_until_)
    return;
  std::vector<member_address> all;
  for (const auto& each : members_)
    if (each->is_alive)
      all.push_back({each->id, "host:" + std::to_string(each->id.incarnation.value)});
  lists_.push_back(std::move(all));
  for (const auto& each : members_)
    if (each->is_alive)
      give_list(*each);
}

/// Gives a member the newest list, which may be late, or an older one, or one with gaps.
void channel_world::give_list(member& to) {
  auto list = lists_.back();
  if (!quiet_ && chance(old_list_)) {
    list = lists_[lists_.size() - std::min<std::size_t>(lists_.size(), pick(1, 50))];
    ++tally_.old_lists;
  }
  if (!quiet_ && chance(partial_list_)) {
    std::erase_if(list, [&](const auto&) { return chance(0.4); });
    ++tally_.partial_lists;
  }
  at(now_ + pick_ms(0, quiet_ ? 20 : 300),
     [this, index = to.id.index, incarnation = to.id.incarnation, list = std::move(list)] {
       auto& who = *members_[index];
       if (who.is_alive && who.id.incarnation == incarnation)
         who.hub->listed(list, now_, *who.effects);
     });
}

// -- faults -------------------------------------------------------------------------------------

/// Holds up all that a member sends, and perhaps loses its host meanwhile.
void channel_world::slow_host(member& which) {
  if (!which.is_alive)
    return;
  note("member " + std::to_string(which.id.index) + " is slow to be heard");
  ++tally_.slow_hosts;
  const auto until = now_ + pick_ms(100, 2500);
  for (const auto& [as, number] : which.links) {
    auto& on = *links_[number];
    auto& other = on.ends[on.ends[1].member == which.id.index && on.ends[1].as == as ? 0 : 1];
    other.last = std::max(other.last, until);
  }
  if (chance(0.5))
    at(now_ + pick_ms(10, 300), [this, index = which.id.index, incarnation = which.id.incarnation] {
      auto& victim = *members_[index];
      if (victim.is_alive && victim.id.incarnation == incarnation)
        kill_member(victim, false);
    });
}

void channel_world::inject_faults() {
  const double seconds = std::chrono::duration<double>(channel_tick_interval).count();
  auto& one = *members_[pick(0, members_.size() - 1)];
  if (one.is_alive && chance(kill_rate_ * seconds))
    kill_member(one, chance(0.7));
  if (chance(break_rate_ * seconds))
    break_a_link();
  if (chance(stall_rate_ * seconds))
    stall_a_link();
  auto& other = *members_[pick(0, members_.size() - 1)];
  if (other.is_alive && chance(pause_rate_ * seconds)) {
    other.paused_until = now_ + pick_ms(10, 4000);
    ++tally_.pauses;
  }
  if (chance(slow_rate_ * seconds))
    slow_host(*members_[pick(0, members_.size() - 1)]);
  if (silent_until_ < now_ && chance(silence_rate_ * seconds)) {
    silent_until_ = now_ + pick_ms(200, 4000);
    ++tally_.silences;
  }
}

/// Ends the faults. Each sender has to send more parcels than its window from now on.
void channel_world::heal() {
  note("quiet from here on");
  quiet_ = true;
  silent_until_ = now_;
  for (const auto& each : members_)
    for (auto& lane : each->lanes)
      if (each->is_alive && lane.sends) {
        lane.quota = 2 * lane.window + 3;
        lane.begins_quota = true;
      }
}

void channel_world::run() {
  for (time_point t = channel_tick_interval; t < channel_quiet_end; t += channel_tick_interval)
    at(t, [this] {
      if (!quiet_)
        inject_faults();
      tick_members();
    });
  for (time_point t = 0ms; t < channel_quiet_end; t += channel_list_interval)
    at(t, [this] { publish(); });
  at(channel_faults_end, [this] { heal(); });
  while (step() && now_ < channel_quiet_end)
    if (quiet_ && events() % 16 == 0 && all_is_well())
      break;
  tally_.events = events();
  check_end();
}

} // namespace troupe::sim
