// Runs the router as an actor: a kv in front of the kvs of all servers.
#pragma once

#include "actors/kv.hpp"
#include "actors/protocol/worker/router.hpp"

#include "caf/actor_system.hpp"

#include <functional>

namespace troupe {

/// Makes the kv that stands for a server: its actor in this process, or a remote one.
using server_connector = std::function<kv(const member_address&)>;

router_handle spawn_router(caf::actor_system& system, job_spec job, server_connector connect,
                           router_options options = {});

} // namespace troupe
