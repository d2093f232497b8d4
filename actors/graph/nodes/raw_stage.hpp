// Declares stages that are CAF actors. A program that includes it links with CAF.
#pragma once

#include "actors/graph/nodes/path.hpp"
#include "actors/roles/worker/raw_stage_actor.hpp"

#include "caf/typed_event_based_actor.hpp" // For the actors of programs.

#include <string>

namespace troupe {

/// The function of a raw_stage().
struct raw_stage_function {
  raw_stage_maker make;
};

/// Returns a stage that an actor of the program runs. Each process of workers calls `make` once
/// when it starts. The function spawns a kv (actors/kv.hpp) that gets the requests of the workers,
/// and that sends its own to `next`. Its contract is that of a stage_decider
/// (actors/protocol/worker/stage.hpp), and the same guard checks it. The actor's end ends the job.
/// The actor is killed when the path ends: its exit handler is not called. It may be detached, but
/// not in a run with --simulate. A run with it cannot be recorded: `promises.pure` has no effect.
stage raw_stage(std::string name, traits promises, raw_stage_maker make);

} // namespace troupe
