// Compresses pushes and values between workers and servers. Each end is a kv in front of a kv: one
// before the router of a pushing process, one before each server.
#pragma once

#include "actors/kv.hpp"
#include "actors/roles/worker/router_actor.hpp"
#include "actors/tables/codec.hpp"
#include "base/log.hpp"

#include "caf/actor_system.hpp"

#include <string>

namespace troupe {

/// Spawns the pushing end. It packs pushes, pulls values encoded as `options.pulls`, and unpacks
/// them. Views are passed on. If a request with a push fails, it is unknown which part was applied,
/// or the batch is done again. So the residuals of error feedback are dropped.
///
/// Lifetime:  until its last handle is dropped or it is told to exit, or `next` ends.
/// Capacity:  a float for each element of tables with error feedback.
/// `log`: called on the actor's thread with a line when residuals are dropped.
router_handle spawn_codec(caf::actor_system& system, job_spec job, codec_options options,
                          router_handle next, log_sink log);

/// Spawns the serving end. It unpacks pushes and packs values as a pull request asks. So a server
/// logs, adds up and passes on plain floats. Bytes that no codec packs are answered with
/// `malformed`.
///
/// Lifetime:  until `next` ends.
/// Capacity:  the unpacked values of each request until `next` releases them.
kv_service spawn_expander(caf::actor_system& system, job_spec job, kv_service next);

} // namespace troupe
