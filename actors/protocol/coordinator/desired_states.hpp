// Makes what each member of a job is told, as pure functions of the coordinator's state.
#pragma once

#include "actors/protocol/coordinator/coordinator_effects.hpp"
#include "actors/protocol/coordinator/membership.hpp"
#include "actors/protocol/coordinator/worker_admission.hpp"
#include "serialization/messages.hpp"
#include "serialization/stored_state.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

namespace troupe {

/// The state from which desired states are made.
struct cluster_state {
  const job_spec& job;
  const storage::coordinator_state& stored;
  job_phase phase = job_phase::gathering;
  const std::optional<failure>& failed; ///< The reason, if the job failed.
  const troupe::view& view;
  const membership& members;
  const worker_admission& workers;
  const std::map<std::uint32_t, server_entry>& servers;
  const std::map<std::uint32_t, actor_entry>& actors;
  const std::set<server_id>& newcomers; ///< Added servers that do not have their share yet.
  const shard_recovery& shards;
  const checkpoint_schedule& schedule;
  const event_journal& events;
  std::optional<batch_id> work_end; ///< Workers hold no batch from this one on.
  std::uint32_t coordinator = 0;    ///< Index of this coordinator.
  std::uint64_t directory_mark = 0;
};

/// Returns an empty body of a desired state for members of this role.
decltype(desired_state::body) body_for(role whom);
/// Returns the members that listen and that members of this role may connect to, with their
/// addresses. `rows`: the properties of all roles.
std::vector<member_address> listeners_for(role whom, const membership& members,
                                          std::span<const role_traits> rows = role_rows);
/// Returns the member's desired state, without a sequence.
desired_state desired_for(const member_id& who, const cluster_state& cluster);
/// Returns the heads and the partition map, as clients need them, with the configuration of
/// `cluster.view`.
view view_of(const cluster_state& cluster);
/// Returns whether a member must get the new desired state at once. Observers wait for their next
/// status when only counters moved.
bool must_be_sent(const desired_state& now_valid, const desired_state& sent);
/// Returns the servers that should run.
std::set<server_id> servers_of(const job_spec& job, const storage::coordinator_state& stored);

} // namespace troupe
