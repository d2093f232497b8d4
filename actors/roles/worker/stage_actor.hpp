// Runs a stage as an actor: a kv in front of the next kv of a path. Every stage, Troupe's or a
// user's, runs in this actor.
#pragma once

#include "actors/kv.hpp"
#include "actors/protocol/worker/stage.hpp"
#include "base/log.hpp"

#include "caf/actor_system.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace troupe {

struct stage_options {
  std::string name; ///< For messages.
  /// Called on the actor's thread. May be null.
  log_sink log{};
  /// Takes the counts of the stage, on the actor's thread. Null: the counts are dropped, as in all
  /// runs so far.
  std::function<void(const std::string& name, std::uint64_t count)> count{};
  /// True: the stage may block, such as one that waits for devices. Other actors then go on.
  bool own_thread = false;
};

/// Spawns a stage, which stage_guard checks.
///
/// Lifetime: until its last handle is dropped or it is told to exit, or `next` ends.
/// Capacity: each open request of its clients, and the state of the stage itself.
kv spawn_stage(caf::actor_system& system, stage_options options,
               std::unique_ptr<stage_decider> stage, kv next);

} // namespace troupe
