#include "bench/kills/kill_ends.hpp"

#include "bench/child.hpp"
#include "serialization/wire.hpp"

#include "caf/typed_event_based_actor.hpp"

#include <chrono>
#include <stdexcept>
#include <utility>

namespace troupe::bench {

namespace {

constexpr std::chrono::seconds patience{10};
/// Far more than a request takes, and more than `patience`, so that no request ends by it.
constexpr std::chrono::seconds request_end{20};
/// Limit of send_more(): without one, the queue of a slow peer would only grow.
constexpr std::size_t open_requests_max = 32;
constexpr std::size_t held_max = 4;

hello greeting(const member_id& self) { return {wire::protocol_version, 1, 0, self}; }

endpoint checked(const result<endpoint>& listening) {
  if (!listening)
    throw std::runtime_error{listening.error().text};
  return *listening;
}

} // namespace

member_id identity_of(std::uint32_t index, std::uint64_t start) {
  return {role::server, index, {start}};
}

// -- without actors -----------------------------------------------------------------------------

plain_end::plain_end(const transport_options& how, std::uint64_t seed)
    : source_(seed), links_(greeting(identity_of(0, 1)), events(), how) {}

endpoint plain_end::listen() { return checked(links_.listen({"127.0.0.1", 0})); }

bool plain_end::wait_flowing() {
  std::unique_lock lock{mutex_};
  return changed_.wait_for(lock, patience, [&] { return talk_ && talk_->count.answered > 0; });
}

void plain_end::send_more() {
  const std::scoped_lock lock{mutex_};
  if (talk_ && !talk_->lost && talk_->open.size() < open_requests_max)
    send_request();
}

bool plain_end::told_lost() const {
  const std::scoped_lock lock{mutex_};
  return talk_ && talk_->lost;
}

link_end_report plain_end::take() {
  std::unique_lock lock{mutex_};
  link_end_report found;
  changed_.wait_for(lock, patience, [&] { return talk_ && talk_->lost; });
  if (talk_) {
    found.requests = talk_->count;
    found.requests.stalled = talk_->open.size();
    for (const auto& each : talk_->held)
      found.requests.corrupt += source_.right(each.push->pieces) ? 0 : 1;
    if (talk_->lost)
      found.told.push_back(talk_->lost_at);
    else
      ++found.requests.stalled; // The link itself never ended.
    talk_.reset();
  }
  found.requests.astray += std::exchange(astray_, 0);
  return found;
}

link_events plain_end::events() {
  link_events made;
  made.opened = [this](link_id link, const hello&, const std::string&) {
    const std::scoped_lock lock{mutex_};
    opened(link);
    changed_.notify_all();
  };
  made.received = [this](link_id link, message what) {
    const std::scoped_lock lock{mutex_};
    received(link, what);
    changed_.notify_all();
  };
  made.lost = [this](link_id link, const failure&) {
    const std::scoped_lock lock{mutex_};
    lost(link);
    changed_.notify_all();
  };
  return made;
}

void plain_end::opened(link_id link) {
  if (talk_) {
    ++astray_;
    return;
  }
  talk_.emplace();
  talk_->link = link;
  while (talk_->open.size() < open_requests_wanted)
    send_request();
}

namespace {

/// Returns null unless `what` is exactly one reply.
const reply_message* reply_in(const message& what) {
  const auto* list = std::get_if<answer_list>(&what);
  return list != nullptr && list->items.size() == 1 ? std::get_if<reply_message>(&list->items[0])
                                                    : nullptr;
}

} // namespace

void plain_end::received(link_id link, message& what) {
  if (!talk_ || talk_->link != link || talk_->lost)
    ++astray_;
  else if (auto* asked = std::get_if<request_list>(&what))
    take_request(link, asked->items.at(0));
  else if (const auto* came = reply_in(what))
    take_answer(*came);
  else
    ++astray_;
}

void plain_end::lost(link_id link) {
  if (!talk_ || talk_->link != link || talk_->lost) {
    ++astray_;
    return;
  }
  talk_->lost = true;
  talk_->lost_at = seconds_now();
  talk_->count.failed += talk_->open.size();
  talk_->open.clear();
}

void plain_end::send_request() {
  const auto number = ++talk_->last_number;
  const auto& made = talk_->open.emplace(number, source_.next()).first->second;
  ++talk_->count.sent;
  links_.send(talk_->link, request_message{number, made});
}

void plain_end::take_answer(const reply_message& came) {
  const auto asked = talk_->open.extract(came.number);
  if (!asked) {
    ++talk_->count.doubled;
    return;
  }
  ++talk_->count.answered;
  talk_->count.corrupt += source_.right(asked.mapped(), came.what) ? 0 : 1;
  while (talk_->open.size() < open_requests_wanted)
    send_request();
}

void plain_end::take_request(link_id link, request_message& came) {
  talk_->count.corrupt += source_.right(came.what.push->pieces) ? 0 : 1;
  links_.send(link, reply_message{came.number, source_.answer(came.what)});
  talk_->held.push_back(std::move(came.what));
  if (talk_->held.size() > held_max)
    talk_->held.pop_front();
}

// -- with actors --------------------------------------------------------------------------------

kv_end::kv_end(const transport_options& how, const member_id& self, std::uint64_t seed)
    : source_(seed), links_(system_, greeting(self), {}, how) {}

endpoint kv_end::listen() {
  links_.serve_values(spawn_kv());
  return checked(links_.listen({"127.0.0.1", 0}));
}

kv_service kv_end::spawn_kv() {
  return system_.spawn([this](kv_service::pointer self) -> kv_service::behavior_type {
    return {[this](const request& what) { return answer_to(what); },
            [this, self](const request_list& what, const answer_sink& to) {
              answer_list made;
              for (const auto& each : what.items)
                made.items.push_back(reply_message{each.number, answer_to(each.what)});
              self->send(to, std::move(made));
            }};
  });
}

reply kv_end::answer_to(const request& what) {
  const std::scoped_lock lock{mutex_};
  ++served_;
  count_.corrupt += source_.right(what.push->pieces) ? 0 : 1;
  changed_.notify_all();
  return source_.answer(what);
}

void kv_end::ask(const endpoint& where, const member_id& whom) {
  const auto target = links_.to_servers()({whom, to_string(where)});
  system_.spawn([this, target](caf::event_based_actor* self) {
    for (std::size_t i = 0; i < open_requests_wanted; ++i)
      ask_one(self, target);
  });
}

void kv_end::ask_one(caf::event_based_actor* self, const kv& target) {
  request made;
  std::uint64_t number = 0;
  {
    const std::scoped_lock lock{mutex_};
    if (!told_.empty())
      return;
    number = ++last_number_;
    made = open_.emplace(number, source_.next()).first->second;
    ++count_.sent;
  }
  self->request(target, request_end, std::move(made))
    .then(
      [this, self, target, number](const reply& came) {
        end(number, {}, &came);
        ask_one(self, target);
      },
      [this, number](const caf::error& why) { end(number, from_caf(why), nullptr); });
}

void kv_end::end(std::uint64_t number, const std::optional<failure>& why, const reply* answer) {
  const std::scoped_lock lock{mutex_};
  const auto asked = open_.extract(number);
  if (!asked) {
    ++count_.doubled;
  } else if (why) {
    ++(why->code == errc::peer_lost ? count_.failed : count_.astray);
    told_.push_back(seconds_now());
  } else {
    ++count_.answered;
    count_.corrupt += source_.right(asked.mapped(), *answer) ? 0 : 1;
  }
  changed_.notify_all();
}

bool kv_end::wait_flowing() {
  std::unique_lock lock{mutex_};
  return changed_.wait_for(lock, patience, [&] { return count_.answered > 0; });
}

bool kv_end::wait_served() {
  std::unique_lock lock{mutex_};
  return changed_.wait_for(lock, patience, [&] { return served_ > 0; });
}

link_end_report kv_end::take() {
  std::unique_lock lock{mutex_};
  changed_.wait_for(lock, patience, [&] { return open_.empty(); });
  link_end_report found;
  found.requests = std::exchange(count_, {});
  found.requests.stalled = open_.size();
  found.told = std::exchange(told_, {});
  open_.clear();
  served_ = 0;
  return found;
}

} // namespace troupe::bench
