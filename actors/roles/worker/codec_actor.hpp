// The two ends of a compressed way to the servers, each a kv in front of a kv: one before the
// router of who pushes, one before each server.
#pragma once

#include "actors/kv.hpp"
#include "actors/roles/worker/router_actor.hpp"
#include "actors/tables/codec.hpp"

#include "caf/actor_system.hpp"

#include <functional>
#include <string>

namespace troupe {

/// Packs what is pushed, asks for values as options.pulls, and unpacks them. Views are passed on.
/// After an error of a request with a push nobody knows what of it was applied, or its batch will
/// be done again: what error feedback keeps is let go.
///
/// Lifetime:  until its last handle is dropped or it is told to exit, or `next` ends.
/// Capacity:  a float for each element of tables with error feedback.
/// `log`: gets a line where error feedback is let go; called on the actor's thread.
router_handle spawn_codec(caf::actor_system& system, job_spec job, codec_options options,
                          router_handle next, std::function<void(std::string)> log);

/// Unpacks what is pushed, and packs values as a query wants them. So whatever a server writes
/// down, adds up and passes on are plain floats. Bytes that nobody packs are answered with
/// `malformed`.
///
/// Lifetime:  until `next` ends.
/// Capacity:  the unpacked values of each request until `next` lets go of them.
kv_service spawn_expander(caf::actor_system& system, job_spec job, kv_service next);

} // namespace troupe
