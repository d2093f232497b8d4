#include "actors/protocol/server/bsp_slots.hpp"

#include <cassert>
#include <utility>

namespace troupe {

void bsp_slots::keep(const step_header& step, request_token token, bool counted) {
  const batch_id batch = step.batch;
  assert(!applied(batch) && !too_far(batch));
  const auto [at, is_new] = kept_.try_emplace(batch, bsp_slot{step, std::nullopt, {}, false});
  assert(is_new || at->second.source != token);
  if (is_new && !is_entered(batch))
    at->second.source = token;
  at->second.waiting.push_back(token);
  at->second.counted |= counted;
}

bool bsp_slots::complete() const {
  if (entries_ > 0 || clocks_ >= bsp_clock_count(job_))
    return false;
  // Kept batches are never below the next clock, so its slots come first and may be counted.
  std::uint64_t expected = bsp_first(job_, clocks_).value;
  const std::uint64_t end = bsp_end(job_, clocks_).value;
  for (auto at = kept_.begin(); at != kept_.end() && expected < end; ++at, ++expected)
    if (at->first.value != expected)
      return false;
  return expected == end;
}

std::vector<bsp_slot> bsp_slots::next() const {
  std::vector<bsp_slot> slots;
  const batch_id end = bsp_end(job_, clocks_);
  for (auto at = kept_.begin(); at != kept_.end() && at->first < end; ++at)
    slots.push_back(at->second);
  return slots;
}

batch_id bsp_slots::first_missing() const {
  batch_id missing = bsp_first(job_, clocks_);
  while (kept_.contains(missing))
    ++missing.value;
  return missing;
}

void bsp_slots::drop_next(bool applied) {
  assert(entries_ > 0);
  kept_.erase(kept_.begin(), kept_.lower_bound(bsp_end(job_, clocks_)));
  clocks_ += applied ? 1 : 0;
  --entries_;
  assert(kept_.empty() || !this->applied(kept_.begin()->first));
  for (auto& [batch, slot] : kept_)
    if (is_entered(batch))
      slot.source.reset(); // It came early; another replica's entry has the payload.
}

std::vector<bsp_slot> bsp_slots::drop_all() {
  std::vector<bsp_slot> slots;
  for (auto& [batch, slot] : std::exchange(kept_, {}))
    slots.push_back(std::move(slot));
  return slots;
}

std::vector<std::pair<request_token, batch_id>> bsp_slots::waits() const {
  std::vector<std::pair<request_token, batch_id>> all;
  for (const auto& [batch, slot] : kept_)
    for (const auto token : slot.waiting)
      all.emplace_back(token, batch);
  return all;
}

bool bsp_slots::holds(request_token token) const {
  for (const auto& [batch, slot] : kept_)
    if (slot.source == token)
      return !is_entered(batch);
  return false;
}

} // namespace troupe
