// Which servers replicate which partitions: founds chains, and proposes, seals and activates their
// configurations. A plain state machine, part of the coordinator.
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
  /// Members of a chain, as far as there are servers. More: more deaths at a time cost nothing, and
  /// each push takes longer.
  std::uint32_t replicas = 1;
  /// Who has not sealed what is proposed, or does not act in what is active, for so long is no
  /// longer trusted. Larger: a server that is
  /// heard and does nothing holds up its chains longer; smaller: a slow one is removed.
  std::chrono::milliseconds seal_time{3000};
  /// Two that could not talk are not put next to each other again for so long. Shorter: tried in
  /// vain more often; longer: a chain may lack a member after their link is well again.
  std::chrono::milliseconds apart_time{10'000};
  /// A lost chain goes on with what one of its servers has kept, alone at first: others join. Else
  /// all of them begin with the same checkpoint.
  bool restart_from_one_replica = false;
};

/// Two neighbours that cannot talk to each other, of which one leaves the chain.
struct separation {
  std::uint32_t chain = 0;
  member_id leaves;
  member_id stays;
};

/// A change has two phases: members of the old configuration and the new one accept nothing more of
/// the old one (they seal), and then the new one begins. Where somebody dies in between, the next
/// proposal begins from the last active configuration again.
///
/// Invariants:
/// (1) epochs of a chain grow; what decide() changed is to be persisted before anyone hears of it.
/// (2) a member keeps the incarnation that it was admitted with: a restarted server has to join.
/// (3) a configuration becomes active only when all of its members have sealed, and all of the
///     former ones have or may not act any more.
/// (4) a chain always has a member; where all of them are dead or silent, it waits for one to come
///     back, or for the caller to begin another generation.
/// (5) no two beginnings have one generation: it is that of the newest configuration + 1.
/// (6) of two neighbours that cannot talk one is left out, not both, and never the one that
///     alone holds everything.
/// (7) a move makes the sum of the squares of what servers carry smaller, and begins while nothing
///     else changes: so moving ends.
class placement {
public:
  /// `stored`: what was persisted last, one for each chain; of a new job, records as they are made.
  /// `draining`: as drain() took it.
  placement(placement_options options, std::vector<chain_metadata> stored,
            std::set<server_id> draining = {});

  // -- who is there --

  /// One status for each chain, of a server that is alive. It seals what it is told of each chain,
  /// whether it has a part in it or not.
  void heard(const member_id& server, std::vector<chain_status> statuses);
  /// Whether the report that was heard last may be answered with its stamp, which renews the
  /// server's lease, and counts for its silence. Not where the server holds up a chain, or acts in
  /// what is over: then it is to become silent, and so to lose its lease.
  bool is_trusted(const member_id& server) const;
  /// It was not trusted for longer than any lease of it can last. Until it is again, others do its
  /// work; it stays a member until a configuration without it is active.
  void silent(const member_id& server);
  /// For sure; it never comes back.
  void dead(const member_id& server);
  bool is_dead(const member_id& server) const { return dead_.contains(server); }
  /// Servers that are about to start, or start again: where one of these has its place, it is
  /// waited for until it is heard or no longer expected.
  void expect(std::set<server_id> servers) { expected_ = std::move(servers); }

  // -- who is to be there --

  /// Those that are to hold nothing any more: others join in their place first. Refused where
  /// nobody who is there would stay.
  result<void> drain(std::set<server_id> servers);
  /// It is not drained any more.
  void keep(server_id server) { draining_.erase(server); }
  /// Whether it can stop without anyone missing it.
  bool is_empty(server_id server) const;
  /// Chains that it is a member of.
  std::size_t load(server_id server) const;
  /// No chain changes. After decide(): nor is one to move.
  bool is_at_rest() const;

  // -- generations --

  /// Chains of which nothing is left, or was ever founded, and that are not being begun.
  std::vector<std::uint32_t> lost_chains() const;
  /// Founds a chain, or begins another generation of it, lost or not, with this checkpoint: on the
  /// servers that it had, or on `replicas` in a row that begins at server `index`; on others in
  /// place of those that are gone. A beginning that is under way ends. Returns whether records()
  /// changed: not where one of its servers is expected, or nobody is there.
  bool begin_again(std::uint32_t index, std::uint64_t checkpoint);

  /// The founder of what is proposed begins with less than the chain had: one that may have kept
  /// more is to take its place, and it does not act while there is one.
  void has_partial_state(std::uint32_t index, const member_id& initial_member);
  /// What is proposed may act though it has less: nobody is there, or expected, who may have more.
  bool accepts_partial_state(std::uint32_t index) const;

  /// Takes the next steps. Returns whether records() changed.
  bool decide(time_point now);

  const std::vector<chain_metadata>& records() const { return records_; }
  /// Since the last call.
  std::vector<separation> take_separations() { return std::exchange(separations_, {}); }

private:
  using phase = std::pair<config_id, bool>; ///< And whether it is active.
  /// How long a chain waits for what its members do next, and for whom too long.
  struct delay {
    phase waits_for;
    time_point since{0};
    std::set<member_id> late;               ///< Until something becomes active.
    std::optional<member_id> left_out = {}; ///< Cannot talk to its neighbour; as long.
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
  std::vector<delay> delays_; ///< Of each chain.
  /// Of each chain those who began with less than it had, until a generation is active.
  std::vector<std::set<member_id>> have_less_;
  std::map<member_id, std::vector<chain_status>> alive_;
  std::set<member_id> silent_;
  std::set<member_id> dead_;
  std::set<server_id> draining_;
  std::set<server_id> expected_;
  /// Who could not talk to whom, both ways, and until when they are kept apart.
  std::map<std::pair<member_id, member_id>, time_point> apart_;
  std::vector<separation> separations_;
};

/// What is proposed; else what is active.
const chain_config& newest(const chain_metadata& chain);
/// A generation of it is not active yet.
bool begins(const chain_metadata& chain);
/// All that have a part in the chain, or are to have one.
std::set<member_id> members_of(const chain_metadata& record);

} // namespace troupe
