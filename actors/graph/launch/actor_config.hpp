// Sets CAF's options for a process of Troupe.
#pragma once

#include "actors/kv.hpp"
#include "base/system/resource_limits.hpp"

#include "caf/actor_system.hpp"
#include "caf/actor_system_config.hpp"
#include "caf/atom.hpp"

#include <memory>

namespace troupe {

struct actor_config : caf::actor_system_config {
  /// `threads`: threads for servers and for actors that compute little. With more threads than
  /// servers here, each message of a step wakes a sleeping thread, which takes about 25 us. Its
  /// sender's thread could have gone on with it. 0: the caller runs the actors and moves their
  /// clock; see simulation.hpp.
  explicit actor_config(std::size_t threads = 1) {
    add_message_types<caf::id_block::troupe>();
    // Work stealing wakes an idle thread up to 10 ms late; a shared queue wakes one at once.
    set("scheduler.policy", threads == 0 ? caf::atom("testing") : caf::atom("sharing"));
    // Long computations (trainers, first values, storage) have threads of their own.
    set("scheduler.max-threads", threads);
  }
};

struct own_actor_system {
  std::unique_ptr<actor_config> config; ///< The system uses it.
  std::unique_ptr<caf::actor_system> system;
};

/// Makes an actor system, which starts threads. CAF hangs where one of them cannot start.
inline own_actor_system make_actor_system(std::size_t threads = 1) {
  return without_unwinding([threads] {
    own_actor_system made{std::make_unique<actor_config>(threads), nullptr};
    made.system = std::make_unique<caf::actor_system>(*made.config);
    return made;
  });
}

} // namespace troupe
