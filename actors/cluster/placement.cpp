#include "actors/cluster/placement.hpp"

#include "actors/mutation.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

namespace {

bool contains(const std::vector<member_id>& members, const member_id& who) {
  return std::find(members.begin(), members.end(), who) != members.end();
}

bool same_servers(const chain_config& a, const chain_config& b) {
  return a.members == b.members && a.joiner == b.joiner;
}

} // namespace

placement::placement(std::uint32_t replicas, std::vector<chain_record> stored)
    : replicas_(replicas), records_(std::move(stored)) {}

void placement::heard(const member_id& server, std::vector<chain_status> statuses) {
  if (is_dead(server))
    return;
  silent_.erase(server);
  alive_.insert_or_assign(server, std::move(statuses));
}

void placement::silent(const member_id& server) {
  alive_.erase(server);
  silent_.insert(server);
}

void placement::dead(const member_id& server) {
  alive_.erase(server);
  dead_.insert(server);
}

bool placement::is_absent(const member_id& server) const {
  return is_dead(server) || silent_.contains(server);
}

bool placement::decide() {
  bool changed = false;
  for (std::uint32_t i = 0; i < records_.size(); ++i)
    changed = decide(i) || changed;
  return changed;
}

bool placement::decide(std::uint32_t index) {
  auto& chain = records_[index];
  auto next = wanted(chain, index);
  if (mutated(mutation::last_member_removed) && next.members.empty())
    for (const auto& [server, unused] : alive_)
      next.members = {server};
  if (next.members.empty())
    return false;
  const auto& newest = chain.proposed ? *chain.proposed : chain.active;
  if (!same_servers(next, newest)) {
    next.epoch = {newest.epoch.value + 1};
    next.generation = newest.generation;
    chain.proposed = std::move(next);
    return true;
  }
  if (!chain.proposed || !may_activate(chain, index))
    return false;
  chain.active = *std::exchange(chain.proposed, std::nullopt);
  return true;
}

bool placement::may_activate(const chain_record& chain, std::uint32_t index) const {
  const auto has_sealed = [&](const member_id& who) {
    const auto* status = status_of(who, index);
    return status != nullptr && status->sealed >= chain.proposed->epoch;
  };
  // Who starts again after it has sealed may hold nothing any more.
  const auto is_ready = [&](const member_id& who) {
    const auto* status = status_of(who, index);
    if (mutated(mutation::activate_incomplete))
      return has_sealed(who);
    return has_sealed(who) && status->complete && status->generation == chain.proposed->generation;
  };
  if (chain.proposed->generation != chain.active.generation) // Of the former one nobody is left.
    return std::ranges::all_of(chain.proposed->members, is_ready);
  const bool new_ones = std::ranges::all_of(chain.proposed->members, is_ready);
  const bool old_ones = std::ranges::all_of(
    chain.active.members, [&](const member_id& who) { return is_absent(who) || has_sealed(who); });
  return (new_ones || mutated(mutation::activate_before_new_seal))
         && (old_ones || mutated(mutation::activate_before_old_seal));
}

/// Without an epoch. From the last active configuration, whatever was proposed since.
chain_config placement::wanted(const chain_record& chain, std::uint32_t index) const {
  if (chain.proposed && chain.proposed->generation != chain.active.generation)
    return {{}, {}, founders(chain, chain.proposed->members), {}};
  const bool goes_on = chain.proposed && mutated(mutation::propose_from_proposal);
  const chain_config& base = goes_on ? *chain.proposed : chain.active;
  chain_config next{{}, {}, base.members, base.joiner};
  if (next.joiner && is_joint(chain, index))
    next.members.push_back(*std::exchange(next.joiner, std::nullopt));
  if (mutated(mutation::restarted_counts_as_member))
    for (member_id& who : next.members)
      for (const auto& [server, unused] : alive_)
        if (server.index == who.index)
          who = server;
  std::erase_if(next.members, [&](const member_id& who) { return is_absent(who); });
  if (next.joiner && (is_absent(*next.joiner) || is_leaving(*next.joiner)))
    next.joiner.reset();
  const auto leaves = [&](const member_id& who) { return is_leaving(who); };
  const auto leaving = std::ranges::count_if(next.members, leaves);
  const auto staying = next.members.size() - static_cast<std::size_t>(leaving);
  if (staying < replicas_) {
    if (!next.joiner)
      next.joiner = joiner_for(chain, next.members);
  } else {
    std::erase_if(next.members, leaves);
    next.members.resize(replicas_); // One that was to leave may have stayed after all.
    next.joiner.reset();
  }
  return next;
}

/// Those of `members` who can begin a generation, and others as far as there are any.
std::vector<member_id> placement::founders(const chain_record& chain,
                                           std::vector<member_id> members) const {
  std::erase_if(members, [&](const member_id& who) { return is_absent(who); });
  while (members.size() < replicas_) {
    const auto next = joiner_for(chain, members);
    if (!next)
      break;
    members.push_back(*next);
  }
  return members;
}

std::vector<std::uint32_t> placement::lost_chains() const {
  std::vector<std::uint32_t> lost;
  for (std::uint32_t i = 0; i < records_.size(); ++i) {
    const auto& [active, origin, proposed] = records_[i];
    const bool begins = proposed && proposed->generation != active.generation;
    const bool all_gone = std::ranges::all_of(active.members, [&](const member_id& who) {
      return mutated(mutation::lost_when_silent) ? is_absent(who) : is_dead(who);
    });
    if (all_gone && !begins)
      lost.push_back(i);
  }
  return lost;
}

bool placement::begin_again(std::uint32_t index, std::uint64_t checkpoint) {
  auto& chain = records_[index];
  const auto members = founders(chain, {});
  if (members.empty() || !std::ranges::count(lost_chains(), index))
    return false;
  const auto& newest = chain.proposed ? *chain.proposed : chain.active;
  chain.origin = checkpoint;
  chain.proposed =
    chain_config{{newest.epoch.value + 1}, {chain.active.generation.value + 1}, members, {}};
  return true;
}

/// The tail makes nothing final that the joiner lacks, and will not before the next epoch.
bool placement::is_joint(const chain_record& chain, std::uint32_t index) const {
  if (!chain.active.joiner || is_absent(*chain.active.joiner))
    return false;
  if (mutated(mutation::joiner_promoted_unasked))
    return true;
  const auto* tail = status_of(chain.active.members.back(), index);
  return tail != nullptr && tail->epoch == chain.active.epoch && tail->joint;
}

/// The one of the proposal where that may stay; else the server with the least to do.
std::optional<member_id> placement::joiner_for(const chain_record& chain,
                                               const std::vector<member_id>& members) const {
  std::optional<member_id> best;
  for (const auto& [server, unused] : alive_) {
    if (contains(members, server) || is_leaving(server))
      continue;
    if (chain.proposed && chain.proposed->joiner == server)
      return server;
    if (!best || load_of(server) < load_of(*best))
      best = server;
  }
  return best;
}

const chain_status* placement::status_of(const member_id& server, std::uint32_t index) const {
  const auto found = alive_.find(server);
  return found == alive_.end() || index >= found->second.size() ? nullptr : &found->second[index];
}

std::size_t placement::load_of(const member_id& server) const {
  return static_cast<std::size_t>(std::ranges::count_if(records_, [&](const chain_record& x) {
    const auto& newest = x.proposed ? *x.proposed : x.active;
    return contains(newest.members, server) || newest.joiner == server;
  }));
}

} // namespace troupe
