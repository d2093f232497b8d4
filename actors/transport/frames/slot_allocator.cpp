#include "actors/transport/frames/slot_allocator.hpp"

#include <iterator>

namespace troupe::detail {

bool slot_allocator::has_recent(std::uint32_t count) const {
  const auto found = recent_.find(count);
  return found != recent_.end() && !found->second.empty();
}

std::optional<std::uint32_t> slot_allocator::take(std::uint32_t count) {
  if (has_recent(count)) {
    auto& same_length = recent_[count];
    const std::uint32_t last = same_length.back();
    same_length.pop_back();
    return last;
  }
  if (const auto made = cut(count))
    return made;
  merge_recent();
  return cut(count);
}

void slot_allocator::merge_recent() {
  for (const auto& [length, slots] : recent_)
    for (const std::uint32_t slot : slots)
      merge(slot, length);
  recent_.clear();
}

void slot_allocator::give_back(std::uint32_t first, std::uint32_t count) {
  recent_[count].push_back(first);
}

std::optional<std::uint32_t> slot_allocator::cut(std::uint32_t count) {
  auto best = runs_.end();
  for (auto each = runs_.begin(); each != runs_.end(); ++each)
    if (each->second >= count && (best == runs_.end() || each->second < best->second))
      best = each;
  if (best == runs_.end())
    return std::nullopt;
  const auto [first, length] = *best;
  runs_.erase(best);
  if (length > count)
    runs_.emplace(first + count, length - count);
  return first;
}

void slot_allocator::merge(std::uint32_t first, std::uint32_t count) {
  const auto next = runs_.lower_bound(first);
  if (next != runs_.end() && first + count == next->first) {
    count += next->second;
    runs_.erase(next);
  }
  const auto after = runs_.lower_bound(first);
  if (after != runs_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == first) {
      before->second += count;
      return;
    }
  }
  runs_.emplace(first, count);
}

} // namespace troupe::detail
