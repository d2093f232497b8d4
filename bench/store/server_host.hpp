// Hosts a server of Troupe without a cluster: one desired state makes it serve its share of a job,
// and no other event follows.
#pragma once

#include "actors/roles/server/server_actor.hpp"
#include "serialization/job.hpp"

#include "caf/actor_system.hpp"

#include <string>
#include <vector>

namespace troupe::bench {

/// Spawns server `index` of a job whose workers have identities of first_start(). Returns once it
/// serves. `address`: where its process listens; empty within one process.
server_handle spawn_serving(caf::actor_system& system, const job_spec& job, std::uint32_t index,
                            const std::string& address);

member_id server_identity(std::uint32_t index);

} // namespace troupe::bench
