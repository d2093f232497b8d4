// Which servers replicate which partitions: proposes, seals and activates the configurations of all
// chains. A plain state machine, part of the coordinator.
#pragma once

#include "actors/store/chain.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace troupe {

/// What the coordinator knows for good of one chain, and tells everyone.
struct chain_record {
  chain_config active;
  /// Checkpoint that the generation of the newest configuration begins with; 0: initial values.
  std::uint64_t origin = 0;
  std::optional<chain_config> proposed; ///< Members of both have to seal before it is active.

  bool operator==(const chain_record&) const = default;
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
///     back. Only where all are dead it is lost, and another generation may begin.
class placement {
public:
  /// `stored`: what was persisted last, one for each chain.
  placement(std::uint32_t replicas, std::vector<chain_record> stored);

  /// One status for each chain, of a server that is alive.
  void heard(const member_id& server, std::vector<chain_status> statuses);
  /// It was not heard for longer than any lease of it can last. Until it is heard again, others do
  /// its work; it stays a member until a configuration without it is active.
  void silent(const member_id& server);
  /// For sure; it never comes back.
  void dead(const member_id& server);
  /// Those that are to hold nothing any more: others join in their place first.
  void drain(std::set<server_id> servers) { draining_ = std::move(servers); }
  /// Chains whose members are all dead, and that are not being begun again.
  std::vector<std::uint32_t> lost_chains() const;
  /// Another generation of a lost chain, from this checkpoint, on servers that are alive. Returns
  /// whether records() changed: not where it is not lost or nobody is alive.
  bool begin_again(std::uint32_t index, std::uint64_t checkpoint);
  /// Takes the next steps. Returns whether records() changed.
  bool decide();

  const std::vector<chain_record>& records() const { return records_; }
  bool is_dead(const member_id& server) const { return dead_.contains(server); }

private:
  bool decide(std::uint32_t index);
  bool is_absent(const member_id& server) const;
  bool is_leaving(const member_id& server) const { return draining_.contains({server.index}); }
  bool may_activate(const chain_record& chain, std::uint32_t index) const;
  chain_config wanted(const chain_record& chain, std::uint32_t index) const;
  std::vector<member_id> founders(const chain_record& chain, std::vector<member_id> members) const;
  std::optional<member_id> joiner_for(const chain_record& chain,
                                      const std::vector<member_id>& members) const;
  bool is_joint(const chain_record& chain, std::uint32_t index) const;
  const chain_status* status_of(const member_id& server, std::uint32_t index) const;
  std::size_t load_of(const member_id& server) const;

  std::uint32_t replicas_;
  std::vector<chain_record> records_;
  std::map<member_id, std::vector<chain_status>> alive_;
  std::set<member_id> silent_;
  std::set<member_id> dead_;
  std::set<server_id> draining_;
};

} // namespace troupe
