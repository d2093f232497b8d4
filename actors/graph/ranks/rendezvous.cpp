#include "actors/graph/ranks/rendezvous.hpp"

namespace troupe {

rendezvous::rendezvous(std::uint32_t rank, std::uint32_t ranks) : rank_(rank), others_(ranks) {}

void rendezvous::opened(std::uint32_t other, link_id link) {
  forget(other);
  connecting_.erase(other);
  others_[other].link = link;
  ranks_of_[link] = other;
}

std::optional<std::uint32_t> rendezvous::lost(link_id link) {
  std::erase_if(connecting_, [&](const auto& each) { return each.second == link; });
  const auto from = rank_at(link);
  if (from)
    forget(*from);
  return from;
}

void rendezvous::forget(std::uint32_t other) {
  if (others_[other].link)
    ranks_of_.erase(*others_[other].link);
  others_[other] = {};
  told_ = false;
}

std::vector<std::uint32_t> rendezvous::wanted() const {
  std::vector<std::uint32_t> all;
  for (auto other = rank_ + 1; other < ranks(); ++other)
    if (!others_[other].link && !connecting_.contains(other))
      all.push_back(other);
  return all;
}

bool rendezvous::has_all_links() const { return ranks_of_.size() + 1 == others_.size(); }

bool rendezvous::take_complete() {
  if (told_ || !has_all_links())
    return false;
  told_ = true;
  return true;
}

std::optional<std::uint32_t> rendezvous::first_missing() const {
  const bool linked = has_all_links();
  for (std::uint32_t other = 0; other < ranks(); ++other)
    if (other != rank_ && !(linked ? others_[other].is_complete : others_[other].link.has_value()))
      return other;
  return std::nullopt;
}

std::optional<std::uint32_t> rendezvous::rank_at(link_id link) const {
  const auto found = ranks_of_.find(link);
  return found == ranks_of_.end() ? std::nullopt : std::optional{found->second};
}

} // namespace troupe
