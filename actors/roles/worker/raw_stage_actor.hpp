// Runs a stage that is an actor of the program. The same guard checks it that checks other stages.
#pragma once

#include "actors/roles/worker/stage_actor.hpp"
#include "base/notes.hpp"

#include <functional>

namespace troupe {

/// Spawns the actor of a stage, a kv that asks `next`. May throw: the process then ends with the
/// text.
using raw_stage_maker = std::function<kv(caf::actor_system&, kv next, stage_notes)>;

/// Makes the actor of a stage and spawns two actors around it: one that its clients ask, and one
/// that it asks in place of `next`. Both belong to one stage_guard. The actor's end is a breach of
/// the contract. `simulated`: an actor with a thread of its own is refused, as it would run beside
/// the simulated time.
///
/// Lifetime: until its last handle is dropped or it is told to exit, or `next` ends. The actor of
/// the program is then killed, and its exit handler is not called.
/// Capacity: as of spawn_stage().
/// Throws the exceptions of `make`; std::runtime_error (it made no actor, or one that is refused).
kv spawn_raw_stage(caf::actor_system& system, stage_options options, const raw_stage_maker& make,
                   kv next, bool simulated = false);

} // namespace troupe
