// Spawns actors that have a thread of their own.
#pragma once

#include "base/system/resource_limits.hpp"

#include "caf/actor_system.hpp"
#include "caf/event_based_actor.hpp"
#include "caf/spawn_options.hpp"

#include <system_error>
#include <utility>

namespace troupe {

/// Spawns an actor with a thread of its own. `by`: `system`, or the actor that spawns. If
/// the system refuses the thread, does as starting_threads(). CAF has counted the thread by then,
/// and its actor system would wait for the thread's end.
template <class Spawner, class... Ts>
auto spawn_detached(caf::actor_system& system, Spawner& by, Ts&&... xs) {
  return starting_threads([&] {
    try {
      return by.template spawn<caf::detached>(std::forward<Ts>(xs)...);
    } catch (const std::system_error&) {
      system.dec_detached_threads();
      throw;
    }
  });
}

} // namespace troupe
