// The two ends of a compressed way to the servers. Each is a kv in front of a kv: one before a
// worker's router, one before each server.
#pragma once

#include "actors/kv.hpp"
#include "actors/roles/worker/router_actor.hpp"
#include "actors/tables/codec.hpp"

#include "caf/actor_system.hpp"

#include <functional>
#include <string>

namespace troupe {

/// Packs pushes, asks for values as options.pulls, and unpacks them. Views are passed on. After an
/// error of a push its effect is unknown, or its batch is done again: error feedback drops its
/// residue.
///
/// Lifetime:  until its last handle is dropped or it is told to exit, or `next` ends.
/// Capacity:  a float for each element of tables with error feedback.
/// `log`: gets a line when error feedback drops its residue; called on the actor's thread.
router_handle spawn_codec(caf::actor_system& system, job_spec job, codec_options options,
                          router_handle next, std::function<void(std::string)> log);

/// Unpacks pushes, and packs values in the encoding that a pull asks for. So a server applies,
/// records and replicates plain floats. Bytes in no known encoding are answered with `malformed`.
///
/// Lifetime:  until `next` ends.
/// Capacity:  the unpacked values of each request until `next` lets go of them.
kv_service spawn_expander(caf::actor_system& system, job_spec job, kv_service next);

} // namespace troupe
