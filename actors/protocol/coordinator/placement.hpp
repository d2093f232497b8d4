// Decides which servers replicate which shards: starts their generations, and proposes, seals and
// activates their configurations. A plain state machine, part of the coordinator.
#pragma once

#include "actors/protocol/chain.hpp"
#include "base/error.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace troupe {

struct placement_options {
  /// Members of a chain, as far as there are servers. More: more deaths at a time cost no data, but
  /// each push takes longer.
  std::uint32_t replicas = 1;
  /// A server that has not sealed a proposal, or does not act in the active configuration, for this
  /// time is no longer trusted. Larger: a server that is heard but does not act holds up its chains
  /// longer. Smaller: a slow server is removed.
  std::chrono::milliseconds seal_time{3000};
  /// Two servers that could not talk are not made neighbours again for this time. Shorter: tried in
  /// vain more often. Longer: a chain may lack a member after their link is well again.
  std::chrono::milliseconds apart_time{10'000};
  /// A lost shard goes on from the local state of one of its servers, alone at first; others join.
  /// Else all its servers begin with the same checkpoint.
  bool restart_from_one_replica = false;
};

/// Two neighbours that cannot talk to each other; one of them leaves the chain.
struct separation {
  std::uint32_t chain = 0;
  member_id leaves;
  member_id stays;
};

/// A change has two phases. First the members of the old and the new configuration seal the old
/// one: they accept no more of it. Then the new one begins. If a server dies in between, the next
/// proposal begins from the last active configuration again.
///
/// Invariants:
/// (1) configuration numbers of a chain grow; changes of decide() are to be persisted before any
///     member hears of them. Held by: check_desired(), check_records() in cli/sim/job_desired.cpp.
/// (2) a member keeps the incarnation that it was admitted with: a restarted server has to join.
///     Held by: assert in propose().
/// (3) a configuration becomes active only when all of its members have sealed, and each former
///     member has sealed or may not act any more. Held by: assert in decide().
/// (4) a chain always has a member; if all of them are dead or silent, it waits for one to come
///     back, or for the caller to begin another generation. Held by: assert in propose().
/// (5) no two starts have the same generation: it is that of the newest configuration + 1. Held by:
///     assert in begin_again(); check_beginning() in cli/sim/job_checks.cpp.
/// (6) of two neighbours that cannot talk one is left out, not both, and never the one that alone
///     holds everything. Held by: assert in part_neighbours().
/// (7) a move reduces the sum of the squares of the servers' loads, and begins while no other
///     change is under way: so moving ends. Held by: assert in balance().
class placement {
public:
  /// `stored`: the records that were persisted last, one for each shard; for a new job, records as
  /// they are made. `draining`: the servers of the last drain().
  placement(placement_options options, std::vector<chain_metadata> stored,
            std::set<server_id> draining = {});

  // -- presence --

  /// Takes one status for each shard, from a live server. A server seals the proposals that it is
  /// told of every shard, whether it has a part in that shard or not.
  void heard(const member_id& server, std::vector<chain_status> statuses);
  /// Returns whether the status that was heard last counts as a sign of life and may be answered
  /// with its stamp, which renews the server's lease. False if the server holds up a chain or acts
  /// in an old configuration: it then becomes silent and so loses its lease.
  bool is_trusted(const member_id& server) const;
  /// Notes that a server was not trusted for longer than any lease of it can last. Others do its
  /// work until it is trusted again. It stays a member until a configuration without it is active.
  void silent(const member_id& server);
  /// Notes that an incarnation is dead for sure; it never comes back.
  void dead(const member_id& server);
  bool is_dead(const member_id& server) const { return dead_.contains(server); }
  /// Sets the servers that are about to start, or start again. A shard that belongs on one of them
  /// waits for it until it is heard or no longer expected.
  void expect(std::set<server_id> servers) { expected_ = std::move(servers); }

  // -- draining --

  /// Sets the servers that are to be emptied: others join in their place first. Refused if no
  /// present server would stay.
  result<void> drain(std::set<server_id> servers);
  /// Stops draining a server.
  void keep(server_id server) { draining_.erase(server); }
  /// Returns whether the server can stop, because no configuration names it.
  bool is_empty(server_id server) const;
  /// Returns the number of chains that the server is a member of.
  std::size_t load(server_id server) const;
  /// Returns whether no chain changes. After decide(): no chain is to move either.
  bool is_at_rest() const;

  // -- generations --

  /// Returns the shards that are lost or were never started, and are not being started.
  std::vector<std::uint32_t> lost_chains() const;
  /// Starts a shard, or another generation of it, lost or not, from this checkpoint. It begins on
  /// the servers that it had, or on `replicas` in a row that begins at server `index`; other
  /// servers replace missing ones. A start that is under way ends. Returns whether records()
  /// changed: false if one of its servers is expected, or no server is present.
  bool begin_again(std::uint32_t index, std::uint64_t checkpoint);

  /// Notes that the initial member of the proposal begins with less than the shard had. A server
  /// that may have kept more is to take its place; while there is one, the initial member does not
  /// act.
  void has_partial_state(std::uint32_t index, const member_id& initial_member);
  /// Returns whether the proposal may act though it has less than the shard had: no present or
  /// expected server may have more.
  bool accepts_partial_state(std::uint32_t index) const;

  /// Takes the next steps. Returns whether records() changed.
  bool decide(time_point now);

  const std::vector<chain_metadata>& records() const { return records_; }
  /// Returns the separations since the last call.
  std::vector<separation> take_separations() { return std::exchange(separations_, {}); }

private:
  using phase = std::pair<config_id, bool>; ///< Configuration, and whether it is active.
  /// How long a chain waits for the next actions of its members, and which members are late.
  struct delay {
    phase waits_for;
    time_point since{0};
    std::set<member_id> late;               ///< Until a configuration becomes active.
    std::optional<member_id> left_out = {}; ///< Cannot talk to its neighbour; kept as long.
  };

  bool decide(std::uint32_t index, time_point now);
  bool is_uneven() const;
  bool balance();
  void propose(chain_metadata& chain, chain_config next, generation_id generation);
  void watch(std::uint32_t index, time_point now);
  void part_neighbours(std::uint32_t index, time_point now);
  std::optional<std::pair<member_id, member_id>> stalled_pair(std::uint32_t index) const;
  bool are_apart(const member_id& a, const member_id& b) const;
  std::size_t apart_count(const member_id& server) const;
  bool has_sealed(const member_id& server, std::uint32_t index) const;
  bool may_activate(std::uint32_t index) const;
  chain_config wanted(std::uint32_t index) const;
  bool goes_on(std::uint32_t index) const;
  bool is_awaited(server_id server) const;
  bool may_have_more(std::uint32_t index, server_id home) const;
  bool one_may_have_more(std::uint32_t index) const;
  chain_config beginning(std::uint32_t index) const;
  std::vector<server_id> homes(std::uint32_t index) const;
  std::vector<member_id> initial_members(std::uint32_t index, std::vector<member_id> members) const;
  std::optional<member_id> joiner_for(std::uint32_t index,
                                      const std::vector<member_id>& members) const;
  bool may_join(std::uint32_t index, const member_id& server,
                const std::vector<member_id>& members) const;
  std::size_t surplus(std::uint32_t index, const std::vector<member_id>& members) const;
  bool is_synced(std::uint32_t index) const;

  bool keeps_up(const member_id& server) const;
  bool is_absent(const member_id& server) const;
  bool is_leaving(const member_id& server) const { return draining_.contains({server.index}); }
  bool is_recorded(const member_id& server) const;
  std::optional<member_id> present(server_id server) const;
  const chain_status* status_of(const member_id& server, std::uint32_t index) const;
  std::size_t load_beside(std::uint32_t index, server_id server) const;
  std::size_t gain(std::uint32_t index, const std::vector<member_id>& members,
                   const member_id& joiner) const;
  std::size_t heads_beside(std::uint32_t index, server_id server) const;
  std::size_t load_max(std::uint32_t index, const std::vector<member_id>& members) const;

  placement_options options_;
  std::vector<chain_metadata> records_;
  std::vector<delay> delays_; ///< One for each shard.
  /// For each shard the servers that began with less than it had, until a generation is active.
  std::vector<std::set<member_id>> have_less_;
  std::map<member_id, std::vector<chain_status>> alive_;
  std::set<member_id> silent_;
  std::set<member_id> dead_;
  std::set<server_id> draining_;
  std::set<server_id> expected_;
  /// Pairs of servers that could not talk, both ways, and until when they are kept apart.
  std::map<std::pair<member_id, member_id>, time_point> apart_;
  std::vector<separation> separations_;
};

/// Returns the proposed configuration, else the active one.
const chain_config& newest(const chain_metadata& chain);
/// Returns whether a generation of the shard is proposed and not active yet.
bool begins(const chain_metadata& chain);
/// Returns all members and joiners of the active and the proposed configuration.
std::set<member_id> members_of(const chain_metadata& record);

} // namespace troupe
