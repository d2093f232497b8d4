// The router as an actor: a kv in front of the kvs of all servers.
#pragma once

#include "actors/kv.hpp"
#include "actors/store/router.hpp"

#include "caf/actor_system.hpp"

#include <functional>

namespace troupe {

/// A kv that also learns of new views. Requests wait while a server is away and go on when a view
/// says that it is back.
///
/// Lifetime: until its last handle is dropped or it is told to exit; open requests then end with
///           the sender's timeout.
/// Capacity: holds every open request; its clients bound themselves (a worker: a few pushes).
using router_handle = kv::extend<caf::reacts_to<view_atom, view>>;

/// Makes the kv that stands for a server: its actor in this process, or a remote one.
using server_connector = std::function<kv(const chain_entry&)>;

router_handle spawn_router(caf::actor_system& system, job_spec job, server_connector connect,
                           router_options options = {});

} // namespace troupe
