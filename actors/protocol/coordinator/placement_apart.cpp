// Separates neighbours in a chain that both are heard and cannot talk to each other. The rest of
// `placement` is in placement.cpp.
#include "actors/protocol/coordinator/placement.hpp"

#include "actors/protocol/mutation.hpp"

#include <algorithm>

namespace troupe {

/// Returns the two that cannot talk and are nearest to the tail: members before them wait for
/// entries that these do not pass on.
std::optional<std::pair<member_id, member_id>> placement::stalled_pair(std::uint32_t index) const {
  const auto& active = records_[index].active;
  const auto is_stalled = [&](const member_id& who) {
    const auto* status = status_of(who, index);
    return status != nullptr && status->stalled && status->config == active.config
           && !is_absent(who);
  };
  auto row = active.members;
  if (active.joiner)
    row.push_back(*active.joiner);
  if (row.size() < 2)
    return std::nullopt;
  if (active.joiner && is_stalled(*active.joiner))
    return std::pair{row[row.size() - 2], row.back()};
  for (std::size_t i = row.size() - 1; i > 0; --i)
    if (is_stalled(row[i - 1]))
      return std::pair{row[i - 1], row[i]};
  return std::nullopt;
}

/// Leaves out one of two that cannot talk: the one that cannot talk to others either, else the
/// second.
void placement::part_neighbours(std::uint32_t index, time_point now) {
  std::erase_if(apart_, [&](const auto& x) { return x.second <= now; });
  auto& chain = records_[index];
  auto& left_out = delays_[index].left_out;
  const auto pair = chain.proposed || left_out ? std::nullopt : stalled_pair(index);
  if (!pair || mutated(mutation::stalled_left_alone))
    return;
  const auto& [first, second] = *pair;
  const bool first_is_worse =
    apart_count(first) > apart_count(second) && chain.active.members.size() > 1;
  apart_[{first, second}] = apart_[{second, first}] = now + options_.apart_time;
  left_out = first_is_worse ? first : second;
  separations_.push_back({index, *left_out, first_is_worse ? second : first});
}

bool placement::are_apart(const member_id& a, const member_id& b) const {
  return apart_.contains({a, b}) && !mutated(mutation::stalled_brought_together);
}

std::size_t placement::apart_count(const member_id& server) const {
  return static_cast<std::size_t>(
    std::ranges::count_if(apart_, [&](const auto& x) { return x.first.first == server; }));
}

} // namespace troupe
