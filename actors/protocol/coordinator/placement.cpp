#include "actors/protocol/coordinator/placement.hpp"

#include "actors/protocol/mutation.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

namespace troupe {

namespace {

using std::ranges::all_of;
using std::ranges::any_of;

bool contains(const std::vector<member_id>& members, const member_id& who) {
  return std::ranges::find(members, who) != members.end();
}

bool contains(const std::vector<member_id>& members, server_id server) {
  return std::ranges::find(members, server.value, &member_id::index) != members.end();
}

bool same_servers(const chain_config& a, const chain_config& b) {
  return a.members == b.members && a.joiner == b.joiner;
}

std::size_t gain_min() { return mutated(mutation::endless_moving) ? 0 : 1; }

} // namespace

placement::placement(placement_options options, std::vector<chain_metadata> stored,
                     std::set<server_id> draining)
    : options_(options), records_(std::move(stored)), delays_(records_.size()),
      have_less_(records_.size()), draining_(std::move(draining)) {}

// -- presence --

void placement::heard(const member_id& server, std::vector<chain_status> statuses) {
  if (is_dead(server))
    return;
  alive_.insert_or_assign(server, std::move(statuses));
  if (keeps_up(server))
    silent_.erase(server);
}

bool placement::is_trusted(const member_id& server) const {
  return alive_.contains(server) && !is_absent(server) && keeps_up(server);
}

/// Returns whether a server is not late and acts in no old configuration. A server that does has
/// missed a change: with a lease it would answer reads.
bool placement::keeps_up(const member_id& server) const {
  const auto found = alive_.find(server);
  for (std::uint32_t i = 0; i < records_.size(); ++i) {
    const auto* status =
      found == alive_.end() || i >= found->second.size() ? nullptr : &found->second[i];
    const bool acts_in_the_past = status != nullptr && status->config != config_id{}
                                  && status->sealed < records_[i].active.config;
    if (acts_in_the_past || delays_[i].late.contains(server))
      return false;
  }
  return true;
}

/// Keeps the last incarnation of each server that no record names: its statuses may be late.
void placement::silent(const member_id& server) {
  std::erase_if(silent_,
                [&](const member_id& x) { return !is_recorded(x) && x.index == server.index; });
  alive_.erase(server);
  silent_.insert(server);
}

void placement::dead(const member_id& server) {
  std::erase_if(dead_,
                [&](const member_id& x) { return !is_recorded(x) && x.index == server.index; });
  alive_.erase(server);
  silent_.erase(server);
  dead_.insert(server);
}

bool placement::is_absent(const member_id& server) const {
  if (mutated(mutation::late_counts_as_silent)
      && any_of(delays_, [&](const delay& x) { return x.late.contains(server); }))
    return true;
  return is_dead(server) || silent_.contains(server);
}

bool placement::is_recorded(const member_id& server) const {
  return any_of(records_, [&](const chain_metadata& x) { return members_of(x).contains(server); });
}

std::optional<member_id> placement::present(server_id server) const {
  const auto found = std::ranges::find_if(
    alive_, [&](const auto& x) { return x.first.index == server.value && !is_absent(x.first); });
  return found == alive_.end() ? std::nullopt : std::optional{found->first};
}

// -- draining --

result<void> placement::drain(std::set<server_id> servers) {
  const bool one_stays = any_of(alive_, [&](const auto& x) {
    return !is_absent(x.first) && !servers.contains({x.first.index});
  });
  if (!servers.empty() && !one_stays)
    return failure{errc::invalid_argument, "cannot drain: no other server is there to take over"};
  draining_ = std::move(servers);
  return {};
}

bool placement::is_empty(server_id server) const {
  const auto names = [&](const chain_config& x) {
    return contains(x.members, server) || (x.joiner && x.joiner->index == server.value);
  };
  return std::ranges::none_of(records_, [&](const chain_metadata& x) {
    return names(x.active) || (x.proposed && names(*x.proposed));
  });
}

std::size_t placement::load(server_id server) const {
  return static_cast<std::size_t>(std::ranges::count_if(
    records_, [&](const chain_metadata& x) { return contains(x.active.members, server); }));
}

bool placement::is_at_rest() const {
  return std::ranges::none_of(
    records_, [](const chain_metadata& x) { return x.proposed || x.active.joiner; });
}

// -- generations --

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
  assert(before.generation == newest(chain).generation);
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

// -- configurations --

bool placement::decide(time_point now) {
  bool changed = false;
  for (std::uint32_t i = 0; i < records_.size(); ++i) {
    part_neighbours(i, now);
    changed = decide(i, now) || changed;
    watch(i, now);
  }
  return changed || balance();
}

bool placement::decide(std::uint32_t index, time_point now) {
  auto& chain = records_[index];
  auto next = wanted(index);
  if (mutated(mutation::last_member_removed) && next.members.empty())
    for (const auto& [server, unused] : alive_)
      next.members = {server};
  if (next.members.empty()) { // Late or not, no other server can do it.
    delays_[index] = {{newest(chain).config, !chain.proposed}, now, {}};
    return false;
  }
  if (!same_servers(next, newest(chain))) {
    // The local state of another server is another generation.
    const bool other_past = begins(chain) && goes_on(index);
    propose(
      chain, std::move(next),
      {newest(chain).generation.value + (other_past && !mutated(mutation::other_past_same_name))});
    return true;
  }
  if (!chain.proposed || !may_activate(index))
    return false;
  assert(all_of(chain.proposed->members, [&](auto& x) { return has_sealed(x, index); }));
  assert(
    all_of(chain.active.members, [&](auto& x) { return is_absent(x) || has_sealed(x, index); }));
  chain.active = *std::exchange(chain.proposed, std::nullopt);
  have_less_[index].clear();
  return true;
}

void placement::propose(chain_metadata& chain, chain_config next, generation_id generation) {
  assert(!next.members.empty() && generation >= newest(chain).generation);
  assert(generation != chain.active.generation || all_of(next.members, [&](auto& who) {
           return contains(chain.active.members, who) || chain.active.joiner == who;
         }));
  next.config = {newest(chain).config.value + 1};
  next.generation = generation;
  chain.proposed = std::move(next);
}

/// Finds the servers that hold up the chain.
void placement::watch(std::uint32_t index, time_point now) {
  const auto& [active, base_checkpoint, proposed] = records_[index];
  auto& [waits_for, since, late, left_out] = delays_[index];
  const auto is_in_time = [&](const member_id& who) {
    const auto* status = status_of(who, index);
    const bool acts = status != nullptr && status->config >= active.config;
    return is_absent(who) || (proposed ? has_sealed(who, index) : acts);
  };
  const phase present{newest(records_[index]).config, !proposed};
  if (waits_for != present) {
    waits_for = present;
    since = now;
    if (!proposed) {
      late.clear();
      left_out.reset();
    }
  }
  // A server that is silent by now stays late: otherwise it could hold up the next proposal as
  // well, and so on.
  std::erase_if(late, [&](const member_id& who) { return !is_absent(who) && is_in_time(who); });
  if (now - since < options_.seal_time || mutated(mutation::late_waited_for))
    return;
  auto all = active.members;
  if (active.joiner)
    all.push_back(*active.joiner);
  if (proposed)
    all.insert(all.end(), proposed->members.begin(), proposed->members.end());
  std::ranges::remove_copy_if(all, std::inserter(late, late.end()), is_in_time);
}

bool placement::has_sealed(const member_id& server, std::uint32_t index) const {
  const auto* status = status_of(server, index);
  return status != nullptr && status->sealed >= records_[index].proposed->config;
}

bool placement::may_activate(std::uint32_t index) const {
  const auto& chain = records_[index];
  // A server that restarts after it has sealed may have no state any more.
  const auto is_ready = [&](const member_id& who) {
    const auto* status = status_of(who, index);
    return has_sealed(who, index) && (!have_less_[index].contains(who) || !one_may_have_more(index))
           && ((status->complete && status->generation == chain.proposed->generation)
               || mutated(mutation::activate_incomplete));
  };
  const bool new_ones = all_of(chain.proposed->members, is_ready)
                        || (mutated(mutation::activate_before_new_seal) && !begins(chain));
  const bool old_ones =
    all_of(chain.active.members,
           [&](const member_id& who) { return is_absent(who) || has_sealed(who, index); })
    || (mutated(mutation::activate_before_old_seal) && !begins(chain));
  return new_ones && old_ones;
}

/// Returns the wanted configuration, without a number. It derives from the last active one,
/// whatever was proposed since.
chain_config placement::wanted(std::uint32_t index) const {
  const auto& [active, base_checkpoint, proposed] = records_[index];
  if (begins(records_[index]))
    return beginning(index);
  const bool from_proposal = proposed && mutated(mutation::propose_from_proposal);
  const chain_config& base = from_proposal ? *proposed : active;
  chain_config next{{}, {}, base.members, base.joiner};
  if (next.joiner && is_synced(index))
    next.members.push_back(*std::exchange(next.joiner, std::nullopt));
  if (mutated(mutation::restarted_counts_as_member))
    for (member_id& who : next.members)
      for (const auto& [server, unused] : alive_)
        if (server.index == who.index)
          who = server;
  std::erase_if(next.members, [&](const member_id& who) { return is_absent(who); });
  const auto& left_out = delays_[index].left_out;
  if (next.members.size() > 1 && left_out)
    std::erase(next.members, *left_out);
  if (!next.joiner && proposed && proposed->members == next.members)
    next.joiner = proposed->joiner; // It belongs to a move that is about to begin, or else.
  if (next.joiner
      && (is_absent(*next.joiner) || is_leaving(*next.joiner) || next.joiner == left_out))
    next.joiner.reset();
  const auto leaves = [&](const member_id& who) { return is_leaving(who); };
  const auto leaving = std::ranges::count_if(next.members, leaves);
  const auto staying = next.members.size() - static_cast<std::size_t>(leaving);
  if (staying < options_.replicas) {
    if (!next.joiner)
      next.joiner = joiner_for(index, next.members);
    return next;
  }
  std::erase_if(next.members, leaves);
  while (next.members.size() > options_.replicas)
    next.members.erase(next.members.begin()
                       + static_cast<std::ptrdiff_t>(surplus(index, next.members)));
  // There are enough members, so a joiner means a move.
  if (next.joiner && gain(index, next.members, *next.joiner) < gain_min())
    next.joiner.reset();
  return next;
}

/// Returns whether the tail commits only entries that the joiner has, until the next configuration.
bool placement::is_synced(std::uint32_t index) const {
  const auto& active = records_[index].active;
  if (!active.joiner || is_absent(*active.joiner))
    return false;
  const bool moves = active.members.size() >= options_.replicas;
  if (mutated(mutation::joiner_promoted_unasked) || (moves && mutated(mutation::move_without_sync)))
    return true;
  const auto* tail = status_of(active.members.back(), index);
  return tail != nullptr && tail->config == active.config && tail->joiner_synced;
}

/// Returns the joiner of the proposal if it may stay. Else returns the server with the least load
/// and, among equals, the one that heads the fewest chains, as it may come to head this one.
/// Nullopt: none may join, or an expected server would be better.
std::optional<member_id> placement::joiner_for(std::uint32_t index,
                                               const std::vector<member_id>& members) const {
  const auto& proposed = records_[index].proposed;
  if (proposed && proposed->joiner && may_join(index, *proposed->joiner, members))
    return proposed->joiner;
  std::optional<member_id> best;
  const auto is_better = [&](server_id x) {
    return !best || load_beside(index, x) < load_beside(index, {best->index});
  };
  const auto burden = [&](const member_id& x) {
    return std::pair{load_beside(index, {x.index}), heads_beside(index, {x.index})};
  };
  for (const auto& [server, unused] : alive_)
    if (may_join(index, server, members) && (!best || burden(server) < burden(*best)))
      best = server;
  const bool is_worth_waiting = any_of(expected_, [&](server_id x) {
    return !present(x) && !draining_.contains(x) && !contains(members, x) && is_better(x);
  });
  return is_worth_waiting ? std::nullopt : best;
}

/// Returns whether a server may join. A server that has not heard of the active configuration in
/// time would keep the others waiting.
bool placement::may_join(std::uint32_t index, const member_id& server,
                         const std::vector<member_id>& members) const {
  const auto* status = status_of(server, index);
  const bool can_talk = members.empty() || !are_apart(members.back(), server);
  return is_trusted(server) && can_talk && !is_leaving(server) && delays_[index].left_out != server
         && !contains(members, server_id{server.index}) && status != nullptr
         && status->sealed >= records_[index].active.config;
}

// -- neighbours that cannot talk to each other --

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
  assert(left_out == second || chain.active.members.size() > 1);
  separations_.push_back({index, *left_out, first_is_worse ? second : first});
}

bool placement::are_apart(const member_id& a, const member_id& b) const {
  return apart_.contains({a, b}) && !mutated(mutation::stalled_brought_together);
}

std::size_t placement::apart_count(const member_id& server) const {
  return static_cast<std::size_t>(
    std::ranges::count_if(apart_, [&](const auto& x) { return x.first.first == server; }));
}

// -- balance --

/// Returns by how much the largest load among `members` exceeds that of `joiner`, without this
/// chain. A move is of use from 1 on.
std::size_t placement::gain(std::uint32_t index, const std::vector<member_id>& members,
                            const member_id& joiner) const {
  const auto most = load_max(index, members);
  return most - std::min(most, load_beside(index, {joiner.index}));
}

/// Returns whether two servers differ by two chains or more; otherwise no move helps. It is cheap,
/// because decide() asks after each status.
bool placement::is_uneven() const {
  std::map<std::uint32_t, std::size_t> loads;
  for (const auto& [server, unused] : alive_)
    if (!is_leaving(server))
      loads[server.index] = 0;
  std::size_t most = 0;
  for (const auto& chain : records_)
    for (const auto& member : chain.active.members)
      most = std::max(most, ++loads[member.index]);
  return any_of(loads, [&](const auto& x) { return x.second + 2 <= most; });
}

/// Begins one move, the one that helps most, if all chains are at rest.
bool placement::balance() {
  if (!is_at_rest() || !(is_uneven() || mutated(mutation::endless_moving)))
    return false;
  std::size_t best_gain = gain_min();
  std::optional<std::pair<std::uint32_t, member_id>> best;
  for (std::uint32_t i = 0; i < records_.size(); ++i) {
    const auto& members = records_[i].active.members;
    const bool is_full = members.size() >= options_.replicas
                         && std::ranges::none_of(members, [&](auto& x) { return is_absent(x); });
    const auto light = is_full ? joiner_for(i, members) : std::nullopt;
    if (!light)
      continue;
    const auto found = gain(i, members, *light);
    if (found >= best_gain) {
      best = {i, *light};
      best_gain = found + 1;
    }
  }
  if (!best)
    return false;
  auto& chain = records_[best->first];
  assert(is_at_rest() && gain(best->first, chain.active.members, best->second) > 0);
  propose(chain, {{}, {}, chain.active.members, best->second}, chain.active.generation);
  return true;
}

/// Returns the position of the member that leaves a chain with one too many: a member that the
/// proposal already leaves out. Else, among those with the largest load, the last; or the first, if
/// the second is head of fewer chains.
std::size_t placement::surplus(std::uint32_t index, const std::vector<member_id>& members) const {
  const auto& proposed = records_[index].proposed;
  for (std::size_t i = 0; proposed && i < members.size(); ++i)
    if (!contains(proposed->members, members[i]))
      return i;
  const auto load = [&](std::size_t i) { return load_beside(index, {members[i].index}); };
  const auto heads = [&](std::size_t i) { return heads_beside(index, {members[i].index}); };
  const auto most = load_max(index, members);
  if (load(0) == most && heads(0) > heads(1))
    return 0;
  std::size_t last = members.size() - 1;
  while (load(last) < most)
    --last;
  return last;
}

const chain_status* placement::status_of(const member_id& server, std::uint32_t index) const {
  const auto found = alive_.find(server);
  return found == alive_.end() || index >= found->second.size() ? nullptr : &found->second[index];
}

/// Returns the number of other chains that the server has a part in.
std::size_t placement::load_beside(std::uint32_t index, server_id server) const {
  std::size_t load = 0;
  for (std::uint32_t i = 0; i < records_.size(); ++i) {
    const auto& config = newest(records_[i]);
    const bool joins = config.joiner && config.joiner->index == server.value;
    load += i != index && (joins || contains(config.members, server)) ? 1 : 0;
  }
  return load;
}

std::size_t placement::load_max(std::uint32_t index, const std::vector<member_id>& members) const {
  std::size_t most = 0;
  for (const member_id& each : members)
    most = std::max(most, load_beside(index, {each.index}));
  return most;
}

/// Returns the number of other chains that the server heads.
std::size_t placement::heads_beside(std::uint32_t index, server_id server) const {
  std::size_t heads = 0;
  for (std::uint32_t i = 0; i < records_.size(); ++i) {
    const auto& members = newest(records_[i]).members;
    heads += i != index && !members.empty() && members.front().index == server.value ? 1 : 0;
  }
  return heads;
}

const chain_config& newest(const chain_metadata& chain) {
  return chain.proposed ? *chain.proposed : chain.active;
}

bool begins(const chain_metadata& chain) {
  return chain.proposed && chain.proposed->generation != chain.active.generation;
}

std::set<member_id> members_of(const chain_metadata& record) {
  std::set<member_id> all;
  const auto add = [&](const chain_config& config) {
    all.insert(config.members.begin(), config.members.end());
    if (config.joiner)
      all.insert(*config.joiner);
  };
  add(record.active);
  if (record.proposed)
    add(*record.proposed);
  return all;
}

} // namespace troupe
