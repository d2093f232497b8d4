// Unpacks gradients and packs values before a server, for workers that compress.
#pragma once

#include "actors/kv.hpp"
#include "actors/tables/codec.hpp"

#include "caf/actor_system.hpp"

namespace troupe {

/// Spawns a kv in front of a server. It unpacks pushes and packs values as a pull request asks. So
/// a server logs, adds up and passes on plain floats. Bytes that no codec packs are answered with
/// `malformed`.
///
/// Lifetime:  until `next` ends.
/// Capacity:  the unpacked values of each request until `next` releases them.
kv_service spawn_expander(caf::actor_system& system, job_spec job, kv_service next);

} // namespace troupe
