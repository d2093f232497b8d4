#include "actors/training/port_room.hpp"

#include "actors/protocol/process_name.hpp"
#include "base/user_code.hpp"

#include <algorithm>
#include <cassert>
#include <stdexcept>
#include <utility>

namespace troupe {

namespace {

/// Longest wait in in::next().
constexpr std::chrono::seconds next_timeout_max{5};
/// A wait for a parcel that people are told of.
constexpr std::chrono::seconds parcel_wait_told{10};

} // namespace

/// Says that a callback of the program runs.
class port_room::calling {
public:
  explicit calling(bool& is_calling) : is_calling_(is_calling) { is_calling_ = true; }
  ~calling() { is_calling_ = false; }
  calling(const calling&) = delete;
  calling& operator=(const calling&) = delete;

private:
  bool& is_calling_;
};

/// Holds the lock of a room for one call of the hub. Messages to others go out after the lock is
/// free, as a log may wait for a disk.
class port_room::hub_call {
public:
  explicit hub_call(port_room& room) : room_(room) { room.mutex_.lock(); }
  ~hub_call() {
    const auto all = std::exchange(room_.said_, {});
    const bool wakes_owner = all.wakes && !std::exchange(room_.is_woken_, true);
    room_.mutex_.unlock();
    if (all.wakes)
      room_.came_.notify_all();
    if (wakes_owner && room_.around_.wake)
      room_.around_.wake();
    for (const auto& [level, text] : all.lines)
      if (room_.around_.log)
        room_.around_.log(level, text);
    for (const auto& each : all.notices)
      if (room_.around_.waits)
        room_.around_.waits(each);
    if (all.failed && room_.around_.fail)
      room_.around_.fail(*all.failed);
  }
  hub_call(const hub_call&) = delete;
  hub_call& operator=(const hub_call&) = delete;

private:
  port_room& room_;
};

/// Stands between a port and the room. `end`: the number of ends for a port that pulls.
class port_room::line final : public port_line {
public:
  line(port_room& room, std::size_t end, port_base& port) : room_(&room), end_(end), port_(&port) {}

  bool send(std::uint32_t to, std::vector<std::byte> head,
            std::vector<parcel_tensor> tensors) override {
    const hub_call now{*room_};
    return room_->hub_.send(end_, to, std::move(head), std::move(tensors), room_->around_.clock(),
                            *room_);
  }

  bool ready(std::uint32_t to) const override {
    const std::lock_guard lock{room_->mutex_};
    return room_->hub_.ready(end_, to, room_->around_.clock());
  }

  std::uint32_t peers() const override {
    return static_cast<std::uint32_t>(room_->ends()[end_].peers.size());
  }

  bool may_wait() const override { return room_->around_.why_no_wait.empty(); }

  std::optional<std::pair<parcel_message, std::uint32_t>>
  next(std::chrono::nanoseconds timeout) override {
    return room_->next(end_, timeout);
  }

  void ask(std::vector<std::vector<std::uint64_t>> keys) override {
    assert(room_->around_.ask); // Only ports of actors pull.
    if (room_->asking_ != nullptr)
      return;
    room_->asking_ = port_;
    room_->around_.ask(std::move(keys));
  }

private:
  port_room* room_;
  std::size_t end_;
  port_base* port_;
};

port_room::port_room(const member_id& self, std::vector<channel_end> ends)
    : hub_(self, std::move(ends)), ports_(hub_.ends().size()), kept_(hub_.ends().size()),
      kept_since_(hub_.ends().size()), is_kept_told_(hub_.ends().size()),
      parcel_waits_(hub_.ends().size()) {}

port_room::~port_room() = default;

void port_room::begin(port_surroundings around, std::shared_ptr<lane_links> links) {
  around_ = std::move(around);
  links_ = std::move(links);
}

// -- the owner's thread ---------------------------------------------------------------------------

void port_room::bind(std::size_t end, port_base& port) {
  const std::lock_guard lock{mutex_};
  ports_.at(end) = &port;
  port.connect(lines_.emplace_back(std::make_unique<line>(*this, end, port)).get());
}

void port_room::bind_pulls(port_base& port) {
  port.connect(lines_.emplace_back(std::make_unique<line>(*this, ports_.size(), port)).get());
}

void port_room::check_takes() const {
  for (const auto* port : ports_)
    if (port != nullptr && port->what() == port_base::kind::in && !port->takes())
      throw std::invalid_argument{"port '" + port->name() + "' has no take: set it in start()"};
}

std::optional<channel_event> port_room::take_next() {
  const std::lock_guard lock{mutex_};
  return hub_.next();
}

void port_room::deliver(std::size_t most) {
  std::size_t left = 0;
  {
    const std::lock_guard lock{mutex_};
    is_woken_ = false;
    left = std::min(most, hub_.waiting()); // Senders may refill the inbox as fast as it empties.
  }
  if (std::ranges::find(ports_, nullptr) != ports_.end())
    return; // The owner could not be made, which its shell tells.
  for (; left > 0; --left)
    if (auto what = take_next(); what && !keep(*what))
      call(*what);
  const hub_call now{*this};
  said_.wakes = said_.wakes || hub_.waiting() > 0;
}

/// Keeps an event that only in::next() may hand out. Returns whether it did.
bool port_room::keep(channel_event& what) {
  const auto end = what.end;
  auto& kept = kept_[end];
  const bool is_parcel = what.what == channel_event::kind::parcel;
  if (kept.empty() && (!is_parcel || ports_[end]->takes()))
    return false;
  kept.push_back(std::move(what));
  if (kept.size() == 1)
    note_kept(end);
  return true;
}

/// Notes since when events of a port wait for in::next().
void port_room::note_kept(std::size_t end) {
  const std::lock_guard lock{mutex_};
  kept_since_[end] = kept_[end].empty() ? std::nullopt : std::optional{around_.clock()};
}

/// Tells of ports with parcels that stay untaken, once for each.
void port_room::tell_of_kept() {
  for (std::size_t end = 0; end < kept_since_.size(); ++end) {
    auto& since = kept_since_[end];
    if (!since || around_.clock() - *since < parcel_wait_told || is_kept_told_[end])
      continue;
    is_kept_told_[end] = true;
    const auto text = "port '" + ports_[end]->name()
                      + "' has parcels that nothing takes: set its take, or call next()";
    said_.lines.emplace_back(log_level::warn, text);
    said_.notices.push_back({log_level::warn, "kept-at-port-" + std::to_string(end), {}, text});
  }
}

/// Calls the callback of an event, and gives credit for a parcel.
void port_room::call(channel_event& what) {
  auto& port = *ports_[what.end];
  {
    const calling now{is_calling_};
    const user_call here{{"port", port.name(), around_.whose}};
    switch (what.what) {
    case channel_event::kind::parcel: port.deliver(std::move(what.parcel), what.peer); break;
    case channel_event::kind::joined:
      if (port.joined)
        port.joined(what.peer);
      break;
    case channel_event::kind::lost:
      if (port.lost)
        port.lost(what.peer);
      break;
    case channel_event::kind::writable: port.deliver_writable(what.peer); break;
    }
  }
  if (what.what != channel_event::kind::parcel)
    return;
  const hub_call now{*this};
  end_parcel_wait(what.end);
  hub_.taken(what, *this);
}

void port_room::values(const_tensors all) {
  auto* const port = std::exchange(asking_, nullptr);
  if (port == nullptr)
    return;
  const user_call here{{"port", port->name(), around_.whose}};
  port->deliver_values(all);
}

std::optional<std::pair<parcel_message, std::uint32_t>>
port_room::next(std::size_t end, std::chrono::nanoseconds timeout) {
  const auto refuse = [&](const std::string& why) {
    throw std::logic_error{"port '" + ports_[end]->name() + "' waits for a parcel, " + why};
  };
  if (timeout > std::chrono::nanoseconds{0} && !around_.why_no_wait.empty())
    refuse(around_.why_no_wait);
  if (is_calling_)
    refuse("within a callback: call next() in gradient() itself");
  const auto until = std::chrono::steady_clock::now()
                     + std::min<std::chrono::nanoseconds>(timeout, next_timeout_max);
  std::optional<std::size_t> rest;
  for (;;) {
    std::optional<channel_event> what;
    if (auto& kept = kept_[end]; !kept.empty()) {
      what = std::move(kept.front());
      kept.pop_front();
      note_kept(end);
    } else {
      const user_call here{{"wait for a parcel at port", ports_[end]->name(), around_.whose}};
      what = wait_for_next(end, until, rest);
    }
    if (!what)
      return std::nullopt;
    if (what->what != channel_event::kind::parcel || what->end != end) {
      if (what->end == end || !keep(*what))
        call(*what);
      continue;
    }
    const hub_call now{*this};
    end_parcel_wait(end);
    hub_.taken(*what, *this);
    return std::pair{std::move(what->parcel), what->peer};
  }
}

/// Takes the next event out of the inbox, or waits for one. `end`: the one that asks. `rest`: set
/// when the time is over; the events that the inbox had then, and that are not taken yet.
std::optional<channel_event> port_room::wait_for_next(std::size_t end,
                                                      std::chrono::steady_clock::time_point until,
                                                      std::optional<std::size_t>& rest) {
  std::unique_lock lock{mutex_};
  for (;;) {
    if (!rest && std::chrono::steady_clock::now() >= until)
      rest = hub_.waiting();
    if (rest && *rest == 0)
      return std::nullopt;
    if (rest)
      --*rest;
    if (auto what = hub_.next(); what || rest)
      return what;
    waits_since_ = around_.clock();
    waits_at_ = end;
    came_.wait_until(lock, until);
    const auto wait = around_.clock() - *std::exchange(waits_since_, std::nullopt);
    waited_ += wait;
    parcel_waits_[end].waited += wait;
  }
}

/// Tells of a port whose owner waits for a parcel, once.
void port_room::tell_of_parcel_wait() {
  if (!waits_since_)
    return;
  auto& mine = parcel_waits_[waits_at_];
  if (mine.is_told || mine.waited + around_.clock() - *waits_since_ < parcel_wait_told)
    return;
  mine.is_told = true;
  const auto text = "port '" + ports_[waits_at_]->name() + "' has waited for a parcel for "
                    + std::to_string(parcel_wait_told.count()) + " s";
  said_.lines.emplace_back(log_level::warn, text);
  said_.notices.push_back(
    {log_level::warn, "parcels-of-port-" + std::to_string(waits_at_), {}, text});
}

void port_room::end_parcel_wait(std::size_t end) {
  if (!std::exchange(parcel_waits_[end], {}).is_told)
    return;
  said_.lines.emplace_back(log_level::info, "port '" + ports_[end]->name() + "' has a parcel");
  said_.notices.push_back({log_level::warn, "parcels-of-port-" + std::to_string(end), {}, ""});
}

void port_room::stop_with(const failure& why) {
  const hub_call now{*this};
  fail(why);
}

// -- the links' threads ---------------------------------------------------------------------------

void port_room::listed(const std::vector<member_address>& all) {
  const hub_call now{*this};
  hub_.listed(all, around_.clock(), *this);
}

void port_room::opened(lane_link link) {
  const hub_call now{*this};
  hub_.opened(link, *this);
}

lane_link port_room::accepted(const member_id& from) {
  const hub_call now{*this};
  const auto link = hub_.new_link();
  hub_.accepted(link, from, around_.clock());
  return link;
}

void port_room::received(lane_link link, channel_message what) {
  const hub_call now{*this};
  hub_.received(link, std::move(what), around_.clock(), *this);
}

void port_room::closed(lane_link link, const std::optional<failure>& why) {
  const hub_call now{*this};
  if (const auto lane = hub_.lane_of(link); why && lane && ports_[lane->end] != nullptr)
    said_.lines.emplace_back(
      log_level::info, "port '" + ports_[lane->end]->name() + "': the link with "
                         + to_string(process_of(ends()[lane->end].peers[lane->peer]))
                         + " ended: " + why->text);
  const bool is_refusal = why && why->code == errc::contract_broken;
  hub_.closed(link, around_.clock(), *this, is_refusal ? why : std::nullopt);
}

void port_room::tick() {
  const hub_call now{*this};
  hub_.tick(around_.clock(), *this);
  tell_of_parcel_wait();
  tell_of_kept();
}

// -- any thread -----------------------------------------------------------------------------------

std::vector<port_counters> port_room::counters(const std::string& node) const {
  const std::lock_guard lock{mutex_};
  std::vector<port_counters> all;
  for (std::size_t end = 0; end < ports_.size(); ++end) {
    if (ports_[end] == nullptr)
      continue; // The object that has it is not made yet.
    const auto now = hub_.counts(end, around_.clock());
    all.push_back({node + "." + ports_[end]->name(), now.parcels, now.bytes, now.lost,
                   static_cast<std::uint64_t>(now.longest_wait.count())});
  }
  return all;
}

std::chrono::microseconds port_room::waited() const {
  const std::lock_guard lock{mutex_};
  const auto present = waits_since_ ? around_.clock() - *waits_since_ : time_point{0};
  return std::chrono::duration_cast<std::chrono::microseconds>(waited_ + present);
}

// -- effects of the hub ---------------------------------------------------------------------------

void port_room::connect(lane_link link, const member_address& to) { links_->connect(link, to); }

void port_room::send(lane_link link, channel_message what) { links_->send(link, std::move(what)); }

void port_room::refuse(lane_link link, const failure& why) { links_->refuse(link, why); }

void port_room::close(lane_link link) { links_->close(link); }

void port_room::wake() { said_.wakes = true; }

/// Tells of a wait and of its end. The end has a topic of its own, as an empty text takes a line
/// back and shows none.
void port_room::waits(std::size_t end, std::uint32_t peer, const std::string& text) {
  const auto& channel = ends()[end];
  const auto port = "port '" + ports_[end]->name() + "' "; // Only a port that is bound sends.
  const bool begins = !text.empty();
  const auto waits = begins ? port + text : "";
  const auto is_over =
    begins ? "" : port + "no longer waits for " + to_string(process_of(channel.peers[peer]));
  said_.lines.emplace_back(begins ? log_level::warn : log_level::info, waits + is_over);
  const auto topic = "-of-lane-" + std::to_string(end) + "-" + std::to_string(peer);
  said_.notices.push_back({log_level::warn, "wait" + topic, {}, waits});
  said_.notices.push_back({log_level::warn, "end" + topic, {}, is_over});
}

void port_room::fail(const failure& why) {
  if (!said_.failed)
    said_.failed = why;
}

} // namespace troupe
