#include "actors/roles/links/unreached_peers.hpp"

#include <utility>

namespace troupe::detail {

namespace {

/// Time without an attempt after which an address is forgotten.
constexpr std::chrono::seconds wanted_time{30};

} // namespace

void unreached_peers::connecting(link_id link, const std::string& address, const std::string& name,
                                 clock::time_point now) {
  attempts_[link] = address;
  const auto [found, is_new] = peers_.try_emplace(address, peer{name, now, now, ""});
  found->second.tried_at = now;
}

std::vector<reach_notice> unreached_peers::opened(link_id link) {
  const auto attempt = attempts_.extract(link);
  if (!attempt)
    return {};
  const auto found = peers_.extract(attempt.mapped());
  if (!found || found.mapped().told.empty())
    return {};
  return {{found.key(), ""}};
}

std::vector<reach_notice> unreached_peers::lost(link_id link, const failure& why,
                                                clock::time_point now) {
  const auto attempt = attempts_.extract(link);
  if (!attempt)
    return {};
  std::vector<reach_notice> all;
  if (const auto found = peers_.find(attempt.mapped()); found != peers_.end()) {
    auto& which = found->second;
    const auto text = "waits for " + which.name + ": " + why.text;
    if (now - which.since >= patience_ && which.told != text)
      all.push_back({found->first, which.told = text});
  }
  for (auto at = peers_.begin(); at != peers_.end();) {
    const bool is_old = now - at->second.tried_at >= wanted_time;
    if (is_old && !at->second.told.empty())
      all.push_back({at->first, ""});
    at = is_old ? peers_.erase(at) : std::next(at);
  }
  return all;
}

} // namespace troupe::detail
