#include "actors/protocol/worker/request_window.hpp"

#include "actors/protocol/mutation.hpp"
#include "serialization/payload.hpp"

#include <cassert>
#include <utility>

namespace troupe {

request_window::request_window(request_window_options options, std::shared_ptr<push_quota> memory)
    : options_(options), memory_(std::move(memory)) {}

void request_window::add(std::uint64_t number, request what, time_point now,
                         window_effects& effects) {
  const auto pushed_bytes = what.push ? payload_bytes(*what.push) : 0;
  const auto bytes = pushed_bytes + (what.pull ? payload_bytes(*what.pull) : 0);
  if (pushed_bytes != 0 && !memory_->take(pushed_bytes)) {
    effects.push_back(end_request_effect{
      number, {errc::overloaded, "more pushes wait than this process may hold"}});
    return;
  }
  open_bytes_ += bytes;
  auto& open = open_.add(number, {deadline(now), pushed_bytes, bytes, false});
  if (link_ == link_state::closed) {
    link_ = link_state::connecting;
    effects.push_back(connect_effect{});
  }
  assert(waiting_.empty() || waiting_.back().what.number < number);
  if (link_ == link_state::open && (overtakes(what) || (waiting_.empty() && take_room(open))))
    gather({number, std::move(what)}, open, now, effects);
  else
    waiting_.push_back({{number, std::move(what)}, now});
  send_waiting(now, effects); // Another link may have given push memory back.
}

/// Takes push memory for the copy of the request on the way. Returns false, and takes none, if the
/// window or the memory has no room.
bool request_window::take_room(const open_request& open) {
  if (on_the_way_bytes_ != 0)
    return on_the_way_bytes_ + open.bytes <= options_.window_bytes
           && memory_->take(open.pushed_bytes);
  memory_->take_in_any_case(open.pushed_bytes);
  return true;
}

void request_window::send_waiting(time_point now, window_effects& effects) {
  while (link_ == link_state::open && !waiting_.empty()) {
    auto& [next, since] = waiting_.front();
    auto& open = open_.at(next.number);
    if (!take_room(open))
      return;
    memory_->add_waited(now - since);
    gather(std::move(next), open, now, effects);
    waiting_.pop_front();
  }
}

/// Adds a request to a frame. The frame leaves when it is full or with flush().
void request_window::gather(request_message what, open_request& open, time_point now,
                            window_effects& effects) {
  assert(!open.is_on_the_way);
  open.is_on_the_way = true;
  on_the_way_bytes_ += open.bytes;
  assert(overtakes(what.what) || on_the_way_bytes_ == open.bytes
         || on_the_way_bytes_ <= options_.window_bytes);
  open.deadline = deadline(now);
  auto& into = overtakes(what.what) ? urgent_ : bulk_;
  if (into.bytes + open.bytes > together_bytes_max)
    send(into, effects);
  into.requests.items.push_back(std::move(what));
  into.bytes += open.bytes;
  if (into.bytes > together_bytes_max || into.requests.items.size() == together_items_max)
    send(into, effects);
  else if (!std::exchange(flush_is_due_, true))
    effects.push_back(flush_soon_effect{});
}

void request_window::send(frame& which, window_effects& effects) {
  if (!which.requests.items.empty())
    effects.push_back(send_requests_effect{std::move(which.requests)});
  which = {};
}

void request_window::flush(window_effects& effects) {
  flush_is_due_ = false;
  send(urgent_, effects);
  send(bulk_, effects);
}

void request_window::opened(time_point now, window_effects& effects) {
  link_ = link_state::open;
  send_waiting(now, effects);
}

void request_window::lost(const failure& why, window_effects& effects) {
  link_ = mutated(mutation::link_not_opened_again) ? link_state::connecting : link_state::closed;
  urgent_ = {};
  bulk_ = {};
  waiting_.clear();
  open_.erase_if([&](std::uint64_t number, const open_request& open) {
    release(open);
    effects.push_back(end_request_effect{number, {errc::peer_lost, why.text}});
    return true;
  });
}

bool request_window::answered(std::uint64_t number, time_point now, window_effects& effects) {
  const auto* const found = open_.find(number);
  if (found == nullptr || !found->is_on_the_way)
    return false;
  release(*open_.extract(number));
  send_waiting(now, effects);
  return true;
}

/// Requests on the way end first, which lets others leave. Then the requests end that still could
/// not leave.
void request_window::expire(time_point now, window_effects& effects) {
  expire_if([](const open_request& x) { return x.is_on_the_way; }, now, effects);
  send_waiting(now, effects);
  expire_if([](const open_request& x) { return !x.is_on_the_way; }, now, effects);
  std::erase_if(waiting_, [&](const waiting_request& x) { return !open_.contains(x.what.number); });
}

template <class Predicate>
void request_window::expire_if(Predicate which, time_point now, window_effects& effects) {
  open_.erase_if([&](std::uint64_t number, const open_request& open) {
    if (open.deadline > now || !which(open))
      return false;
    release(open);
    effects.push_back(end_request_effect{number, {errc::timed_out, "no answer in time"}});
    return true;
  });
}

time_point request_window::deadline(time_point now) const {
  return now + options_.timeout + time_for_payload(open_bytes_);
}

/// Gives back the room and the push memory of a request that ends.
void request_window::release(const open_request& what) {
  assert(open_bytes_ >= what.bytes);
  assert(!what.is_on_the_way || on_the_way_bytes_ >= what.bytes);
  open_bytes_ -= what.bytes;
  if (mutated(mutation::window_not_returned))
    return;
  memory_->give_back(what.is_on_the_way ? 2 * what.pushed_bytes : what.pushed_bytes);
  on_the_way_bytes_ -= what.is_on_the_way ? what.bytes : 0;
}

} // namespace troupe
