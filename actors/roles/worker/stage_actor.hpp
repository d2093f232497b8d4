// Runs a stage as an actor: a kv in front of the next kv of a path. Every stage, Troupe's or a
// user's, runs in this actor.
#pragma once

#include "actors/kv.hpp"
#include "actors/protocol/worker/stage.hpp"
#include "base/notes.hpp"

#include "caf/actor_system.hpp"

#include <memory>
#include <string>

namespace troupe {

struct stage_options {
  std::string name;                       ///< For messages.
  std::shared_ptr<program_notes> notes{}; ///< Null: the notes of the stage are dropped.
  /// True: the stage may block, such as one that waits for devices. Other actors then go on.
  bool own_thread = false;
  /// True for a stage of the program: the values that it makes must be finite, and its lines are
  /// notes. Lines of other stages are warnings.
  bool is_program = false;
};

/// Spawns a stage, which stage_guard checks.
///
/// Lifetime: until its last handle is dropped or it is told to exit, or `next` ends.
/// Capacity: each open request of its clients, and the state of the stage itself.
kv spawn_stage(caf::actor_system& system, stage_options options,
               std::unique_ptr<stage_decider> stage, kv next);

} // namespace troupe
