#include "storage/etcd_leadership.hpp"

#include "base/system/resource_limits.hpp"

#include <algorithm>
#include <utility>

namespace troupe::storage {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds poll_interval{100};
// Deadline of one call while no other process waits for this one.
constexpr milliseconds patient{1000};
// A lease is renewed `renewals` times before it ends; 1 / `margin_parts` of it stays unused.
constexpr int renewals = 5;
constexpr int margin_parts = 5;

} // namespace

etcd_leadership::etcd_leadership(leadership_options options)
    : options_(std::move(options)), client_(options_.endpoints) {}

etcd_leadership::~etcd_leadership() {
  {
    const std::lock_guard lock{mutex_};
    stop_ = true;
  }
  stopping_.notify_all();
  if (keeper_.joinable())
    keeper_.join();
}

result<std::unique_ptr<etcd_leadership>> etcd_leadership::campaign(leadership_options options) {
  std::unique_ptr<etcd_leadership> made{new etcd_leadership{std::move(options)}};
  std::string told;
  const auto tell = [&](const std::string& text) {
    if (made->options_.log && text != told)
      made->options_.log(text);
    told = text;
  };
  std::string waited_for;
  const auto wait_for = [&](const std::string& what) {
    if (made->options_.waits && what != waited_for)
      made->options_.waits(what);
    waited_for = what;
  };
  while (true) {
    const auto outcome = made->try_to_lead();
    if (!outcome && reaction_to(outcome.error().code) == reaction::stop)
      return outcome.error();
    const auto missing = outcome ? "" : "waits for etcd: " + outcome.error().text;
    wait_for(missing);
    if (outcome && *outcome)
      break;
    tell(outcome ? "stands by" : missing);
    made->wait(poll_interval);
  }
  tell("leads");
  made->keeper_ =
    starting_threads([&] { return std::thread{[self = made.get()] { self->keep(); }}; });
  return made;
}

/// Returns whether this process leads now. Requests a lease only if the key is free.
result<bool> etcd_leadership::try_to_lead() {
  const auto leader = client_.get(options_.key, patient);
  if (!leader)
    return leader.error();
  if (*leader)
    return false;
  const auto asked_at = clock::now();
  const auto lease = client_.grant_lease(options_.lease, patient);
  if (!lease)
    return lease.error();
  return take(*lease, asked_at);
}

result<bool> etcd_leadership::take(const etcd_lease& lease, clock::time_point asked_at) {
  const auto outcome = client_.write({{{options_.key, etcd_transaction::condition::created, 0}},
                                      options_.key,
                                      options_.who,
                                      lease.id},
                                     patient);
  if (!outcome)
    return outcome.error();
  lease_ = lease;
  revision_ = outcome->revision;
  // An earlier try within the same call may have made the key.
  const auto leader = outcome->present.find(options_.key);
  const bool is_mine = leader != outcome->present.end() && leader->second.lease == lease.id;
  if (is_mine)
    revision_ = leader->second.created;
  held_until_ = end_of(lease.time, asked_at);
  return (outcome->written || is_mine) && held();
}

etcd_leadership::clock::time_point etcd_leadership::end_of(std::chrono::seconds time,
                                                           clock::time_point asked_at) const {
  return asked_at + milliseconds{time} - milliseconds{lease_.time} / margin_parts;
}

void etcd_leadership::keep() {
  std::unique_lock lock{mutex_};
  while (held()) {
    if (stopping_.wait_for(lock, milliseconds{lease_.time} / renewals, [this] { return stop_; }))
      return;
    lock.unlock();
    renew();
    lock.lock();
  }
}

/// Renews the lease. Also reads the key, because somebody may have removed it.
void etcd_leadership::renew() {
  const auto deadline = milliseconds{lease_.time} / renewals;
  const auto asked_at = clock::now();
  const auto left = client_.keep_alive(lease_.id, deadline);
  const auto leader =
    left ? client_.get(options_.key, deadline) : result<std::optional<etcd_value>>{left.error()};
  {
    const std::lock_guard lock{mutex_};
    last_problem_ = leader ? "" : leader.error().text;
  }
  if (!leader)
    return;
  if (left->count() == 0 || !*leader || (*leader)->created != revision_)
    return give_up();
  auto until = held_until();
  if (clock::now() < until) // Unless another thread gives up the lead at this moment.
    held_until_.compare_exchange_strong(until, end_of(*left, asked_at));
}

etcd_transaction::condition etcd_leadership::condition() const {
  return {options_.key, etcd_transaction::condition::created, revision_};
}

void etcd_leadership::wait(milliseconds time) {
  std::unique_lock lock{mutex_};
  stopping_.wait_for(lock, time, [this] { return stop_; });
}

failure etcd_leadership::lost() const {
  const std::lock_guard lock{mutex_};
  return {errc::fenced, "no longer leads: "
                          + (last_problem_.empty() ? "its lease of " + options_.key + " ended"
                                                   : "cannot renew its lease: " + last_problem_
                                                       + "; training waits until etcd answers")};
}

} // namespace troupe::storage
