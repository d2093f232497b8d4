// Spawns actors that have a thread of their own.
#pragma once

#include "base/system/resource_limits.hpp"

#include "caf/actor_system.hpp"
#include "caf/local_actor.hpp"
#include "caf/spawn_options.hpp"

#include <system_error>
#include <utility>

namespace troupe {

namespace detail {
inline caf::actor_system& system_of(caf::actor_system& system) { return system; }
inline caf::actor_system& system_of(caf::local_actor& actor) { return actor.system(); }
} // namespace detail

/// Spawns an actor with a thread of its own. `by`: an actor system, or the actor that spawns. If
/// the system refuses the thread, does as starting_threads(). CAF has counted the thread by then,
/// and its actor system would wait for the thread's end.
template <class Spawner, class... Ts>
auto spawn_detached(Spawner& by, Ts&&... xs) {
  return starting_threads([&] {
    try {
      return by.template spawn<caf::detached>(std::forward<Ts>(xs)...);
    } catch (const std::system_error&) {
      detail::system_of(by).dec_detached_threads();
      throw;
    }
  });
}

/// Spawns an actor with a thread of its own. If the system refuses the thread in a run inside
/// another program, the actor has none. An actor that spawns must not throw, as the job would wait
/// for it for ever.
template <class Spawner, class... Ts>
auto spawn_detached_or_not(Spawner& by, const Ts&... xs) {
  try {
    return spawn_detached(by, xs...);
  } catch (const std::system_error&) {
    return by.spawn(xs...);
  }
}

} // namespace troupe
