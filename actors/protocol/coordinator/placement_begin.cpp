// Starts generations of a shard: detects that the last one is lost, and chooses the servers that
// begin the next. The rest of `placement` is in placement.cpp.
#include "actors/protocol/coordinator/placement.hpp"

#include "actors/protocol/mutation.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

using std::ranges::all_of;
using std::ranges::any_of;

std::vector<std::uint32_t> placement::lost_chains() const {
  std::vector<std::uint32_t> lost;
  const auto is_gone = [&](const member_id& who) {
    return mutated(mutation::lost_when_silent) ? is_absent(who) : is_dead(who);
  };
  for (std::uint32_t i = 0; i < records_.size(); ++i)
    if (all_of(records_[i].active.members, is_gone) && !begins(records_[i]))
      lost.push_back(i);
  return lost;
}

bool placement::begin_again(std::uint32_t index, std::uint64_t checkpoint) {
  auto& chain = records_[index];
  std::vector<member_id> members;
  for (const server_id home : homes(index)) {
    // A server that is to leave may have kept state that no other has.
    if (draining_.contains(home) && !goes_on(index))
      continue;
    if (const auto who = present(home))
      members.push_back(*who);
    else if (goes_on(index) ? is_awaited(home) : expected_.contains(home))
      return false;
  }
  members = initial_members(index, std::move(members));
  if (members.empty())
    return false;
  const auto& before = mutated(mutation::found_twice) ? chain.active : newest(chain);
  chain.base_checkpoint = checkpoint;
  have_less_[index].clear();
  propose(chain, {{}, {}, std::move(members), {}}, {before.generation.value + 1});
  return true;
}

/// Returns whether another generation of the shard begins with the local state of one of its
/// servers.
bool placement::goes_on(std::uint32_t index) const {
  return options_.restart_from_one_replica && records_[index].active.config != config_id{};
}

/// Returns whether an absent server may still come.
bool placement::is_awaited(server_id server) const {
  return expected_.contains(server)
         || any_of(silent_, [&](const member_id& who) { return who.index == server.value; });
}

void placement::has_partial_state(std::uint32_t index, const member_id& initial_member) {
  have_less_[index].insert(initial_member);
}

bool placement::accepts_partial_state(std::uint32_t index) const {
  return begins(records_[index]) && !one_may_have_more(index)
         && any_of(records_[index].proposed->members,
                   [&](const member_id& who) { return have_less_[index].contains(who); });
}

bool placement::one_may_have_more(std::uint32_t index) const {
  return any_of(homes(index), [&](server_id home) { return may_have_more(index, home); });
}

bool placement::may_have_more(std::uint32_t index, server_id home) const {
  const auto who = present(home);
  return who ? !have_less_[index].contains(*who) : is_awaited(home);
}

/// Returns the members that begin the proposed generation. If its initial member is gone, or has
/// less than other servers may have, one of these takes its place. Empty while these are awaited.
chain_config placement::beginning(std::uint32_t index) const {
  auto members = records_[index].proposed->members;
  const auto has_less = [&](const member_id& who) { return have_less_[index].contains(who); };
  std::erase_if(members, [&](const member_id& who) { return is_absent(who); });
  if (!goes_on(index) || std::ranges::find_if_not(members, has_less) != members.end())
    return {{}, {}, initial_members(index, std::move(members)), {}};
  std::vector<member_id> others;
  bool one_is_awaited = false;
  for (const server_id home : homes(index)) {
    if (!may_have_more(index, home))
      continue;
    if (const auto who = present(home))
      others.push_back(*who);
    else
      one_is_awaited = true;
  }
  if (others.empty() && one_is_awaited)
    return {};
  return {{}, {}, initial_members(index, others.empty() ? members : others), {}};
}

/// Returns the servers that a shard belongs on, or that may have its former state.
std::vector<server_id> placement::homes(std::uint32_t index) const {
  const auto& chain = records_[index];
  const bool by_proposal = begins(chain) && !goes_on(index);
  std::vector<server_id> all;
  for (const member_id& each : by_proposal ? chain.proposed->members : chain.active.members)
    all.push_back({each.index});
  if (!all.empty())
    return all;
  std::set<server_id> row = expected_;
  for (const auto& [server, unused] : alive_)
    row.insert({server.index});
  std::erase_if(row, [&](server_id x) { return draining_.contains(x); });
  all.assign(row.begin(), row.end());
  if (all.empty())
    return all;
  std::ranges::rotate(all, all.begin() + static_cast<std::ptrdiff_t>(index % all.size()));
  all.resize(std::min<std::size_t>(all.size(), options_.replicas));
  return all;
}

/// Returns the present ones of `members`, and other servers in place of absent ones.
std::vector<member_id> placement::initial_members(std::uint32_t index,
                                                  std::vector<member_id> members) const {
  std::erase_if(members, [&](const member_id& who) { return is_absent(who); });
  const std::size_t wanted = goes_on(index) ? 1 : options_.replicas;
  if (members.size() > wanted)
    members.resize(wanted);
  while (members.size() < wanted) {
    const auto next = joiner_for(index, members);
    if (!next)
      break;
    members.push_back(*next);
  }
  return members;
}

} // namespace troupe
