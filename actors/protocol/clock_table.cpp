#include "actors/protocol/clock_table.hpp"

#include "actors/protocol/mutation.hpp"

#include <algorithm>
#include <cassert>
#include <string>

namespace troupe {

void clock_table::list(const std::vector<clock_entry>& workers,
                       std::optional<std::uint64_t> promised) {
  std::map<worker_id, entry> listed;
  for (const clock_entry& order : workers) {
    entry next{order.incarnation};
    const auto old = entries_.find(order.worker);
    if (old != entries_.end() && old->second.incarnation == order.incarnation)
      next = old->second;
    next.admitting = !order.known;
    if (next.state == standing::promised && order.known)
      next.clock = std::max(next.clock, order.clock);
    if (order.known && order.clock == unbound_clock) {
      next.clock = order.clock;
      next.state = standing::heard;
    }
    listed.insert_or_assign(order.worker, next);
    std::erase(departed_, std::pair{order.worker, order.incarnation});
  }
  for (const auto& [worker, old] : entries_) {
    const auto present = listed.find(worker);
    if (present == listed.end() || present->second.incarnation != old.incarnation)
      remember_departed(worker, old.incarnation);
    else
      assert(present->second.clock >= old.clock && present->second.state >= old.state);
  }
  assert(listed.size() <= workers.size());
  entries_ = std::move(listed);
  if (promised)
    promise(*promised);
}

void clock_table::promise(std::uint64_t clock) {
  for (auto& [worker, x] : entries_) {
    if (x.state != standing::unheard || !x.admitting)
      continue;
    assert(x.clock == 0);
    x.clock = clock;
    x.state = standing::promised;
  }
}

std::optional<failure> clock_table::rejection_of(worker_id worker,
                                                 incarnation_id incarnation) const {
  const auto found = entries_.find(worker);
  if (found != entries_.end() && found->second.incarnation == incarnation)
    return std::nullopt;
  const std::string name = "worker " + std::to_string(worker.value);
  if (found == entries_.end())
    return failure{errc::not_ready, name + " is not listed here"};
  if (std::find(departed_.begin(), departed_.end(), std::pair{worker, incarnation})
      != departed_.end())
    return failure{errc::fenced, name + " was replaced by a later start of it"};
  return failure{errc::not_ready, "this start of " + name + " is not listed here"};
}

void clock_table::advance(worker_id worker, incarnation_id incarnation, std::uint64_t next,
                          std::uint64_t pending) {
  const auto found = entries_.find(worker);
  if (found == entries_.end() || found->second.incarnation != incarnation)
    return;
  found->second.pushed = std::max(found->second.pushed, next);
  found->second.state = standing::heard;
  settle(worker, incarnation, pending);
}

void clock_table::settle(worker_id worker, incarnation_id incarnation, std::uint64_t pending) {
  const auto found = entries_.find(worker);
  if (found == entries_.end() || found->second.incarnation != incarnation)
    return;
  entry& x = found->second;
  x.clock = std::max(x.clock, std::min(x.pushed, pending));
}

void clock_table::forget_pushed() {
  for (auto& [worker, x] : entries_)
    x.pushed = 0;
}

std::optional<clock_entry> clock_table::laggard(std::uint64_t floor) const {
  std::optional<clock_entry> slowest;
  for (const auto& [worker, x] : entries_) {
    if (x.state == standing::unheard) {
      if (mutated(mutation::unheard_not_waited_for))
        continue;
      return clock_entry{worker, x.incarnation, 0, false};
    }
    if (x.clock < floor && (!slowest || x.clock < slowest->clock))
      slowest = clock_entry{worker, x.incarnation, x.clock, true};
  }
  return slowest;
}

std::optional<std::uint64_t> clock_table::min() const {
  std::optional<std::uint64_t> smallest;
  for (const auto& [worker, x] : entries_)
    if (x.state != standing::unheard && (!smallest || x.clock < *smallest))
      smallest = x.clock;
  return smallest;
}

std::vector<clock_entry> clock_table::entries() const {
  std::vector<clock_entry> all;
  for (const auto& [worker, x] : entries_)
    all.push_back({worker, x.incarnation, x.clock, x.state != standing::unheard});
  return all;
}

void clock_table::remember_departed(worker_id worker, incarnation_id incarnation) {
  departed_.emplace_back(worker, incarnation);
  if (departed_.size() > departed_max)
    departed_.pop_front();
}

} // namespace troupe
