#include "actors/protocol/worker/work_list.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

namespace {

bool contains(const lease& x, batch_id batch) {
  if (batch < x.first)
    return false;
  const auto distance = batch.value - x.first.value;
  return distance % x.stride == 0 && distance / x.stride < x.count;
}

} // namespace

void work_list::set_leases(const std::vector<lease>& leases) {
  std::map<std::uint64_t, lease> listed;
  for (const auto& x : leases) {
    listed.emplace(x.id, x);
    const bool is_new = !leases_.contains(x.id);
    for (std::uint32_t i = 0; i < x.count; ++i) {
      const auto batch = x.at(i);
      if (is_new)
        done_.erase(batch);
      if (!done_.contains(batch) && !in_flight_.contains(batch))
        open_.insert(batch);
    }
  }
  leases_ = std::move(listed);
  const auto gone = [this](batch_id batch) { return !holds(batch); };
  std::erase_if(open_, gone);
  std::erase_if(in_flight_, gone);
  std::erase_if(done_, gone);
}

std::optional<batch_id> work_list::next() const {
  if (open_.empty())
    return std::nullopt;
  return *open_.begin();
}

void work_list::in_flight(batch_id batch) {
  open_.erase(batch);
  in_flight_.insert(batch);
}

void work_list::done(batch_id batch) {
  in_flight_.erase(batch);
  open_.erase(batch); // It was taken away and given back meanwhile.
  if (!holds(batch))
    return;
  done_.insert(batch);
  for (const auto& [unused, x] : leases_)
    if (contains(x, batch)) {
      std::uint32_t count = 0;
      while (count < x.count && done_.contains(x.at(count)))
        ++count;
      finished_ = finished_ || count == x.count;
    }
}

void work_list::reopen(batch_id batch) {
  if (in_flight_.erase(batch) > 0 && holds(batch))
    open_.insert(batch);
}

void work_list::clear() { *this = {}; }

bool work_list::take_finished() { return std::exchange(finished_, false); }

std::vector<lease_progress> work_list::progress() const {
  std::vector<lease_progress> all;
  for (const auto& [unused, x] : leases_) {
    lease_progress mine{x, {}};
    for (std::uint32_t i = 0; i < x.count; ++i)
      if (done_.contains(x.at(i)))
        mine.done.push_back(x.at(i));
    all.push_back(std::move(mine));
  }
  return all;
}

bool work_list::holds(batch_id batch) const {
  return std::any_of(leases_.begin(), leases_.end(),
                     [&](const auto& entry) { return contains(entry.second, batch); });
}

} // namespace troupe
